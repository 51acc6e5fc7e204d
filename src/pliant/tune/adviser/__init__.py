"""Chooses values with Optuna: the one room that imports it, and only a process of its own imports this room."""
