"""Runs algorithms of people's own: IBM's plug-ins, and samplers for Optuna. What such code says or does is a stranger's."""
