"""The scenarios, by what they do to the pods."""
