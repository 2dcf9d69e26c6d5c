"""Running programs, and knowing the ones that run."""
