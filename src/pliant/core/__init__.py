"""Nouns, lifecycles, ports and errors. Standard library only: no I/O, clock, randomness or logging."""
