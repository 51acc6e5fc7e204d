"""Runs plug-ins of IBM's hyperparameter optimization as they are: `optimizer.py` with a `PluginOptimizer`."""
