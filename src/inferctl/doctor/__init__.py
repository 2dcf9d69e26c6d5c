"""What this machine can do already, and everything that it lacks, each with the command that mends it."""
