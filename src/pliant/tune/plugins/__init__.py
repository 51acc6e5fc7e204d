"""Runs algorithms of people's own: IBM's plug-ins, and samplers for Optuna. Their code is a stranger's."""
