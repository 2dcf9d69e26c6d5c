"""Disruptions of a release under load, each with a control, and the verdict on what was lost."""
