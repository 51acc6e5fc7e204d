"""Nouns, lifecycles, ports and errors. Standard library and annotated-types only: no I/O, clock, randomness or logging."""
