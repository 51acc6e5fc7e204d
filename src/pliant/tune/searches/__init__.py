"""The use cases of searches, and what keeps them going."""
