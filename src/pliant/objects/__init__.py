"""Copies of what jobs write, in an object store: what is copied when, and how it comes back. A process of its own."""
