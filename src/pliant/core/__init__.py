"""Nouns, lifecycles, ports and errors. Only standard library and annotated-types: no I/O, clock, chance, logging."""
