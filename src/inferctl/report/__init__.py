"""What happened in a run: one timeline, and what is drawn and judged from it."""
