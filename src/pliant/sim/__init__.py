"""Pliant's control over a virtual clock and a simulated cluster: the same decisions, no processes and no waiting."""
