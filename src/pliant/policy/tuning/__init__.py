"""How a search goes on: its rungs, what becomes of its trials, and when it is over. Pure."""
