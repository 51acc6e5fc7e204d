"""Starts and stops processes on this machine's slots, behind the port `Cluster`. Knows no jobs and no gradients."""
