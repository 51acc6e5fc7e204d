"""Experiment trackers: what a training reports is logged to MLflow and Weights & Biases, by a process of its own."""
