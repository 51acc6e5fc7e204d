"""Searches for hyperparameters: what chooses values, and what keeps searches going."""
