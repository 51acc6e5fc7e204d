"""Pliant shares a pool of GPUs between jobs that grow and shrink while they run."""

__version__ = "0.1.0"
