"""IBM's module names for scripts that were written for Elastic Distributed Training.

This folder itself comes first on the `PYTHONPATH` of every task, so `from fabric_model import FabricModel`,
`from callbacks import Callback, LoggerCallback`, `from emetrics import EMetrics`, `from elog import ELog` and
`import pth_parameter_mgr` work there; a script's own copy of one of them wins. The same modules can be imported as
`pliant.ibm.modules.NAME`. A module may therefore be loaded twice under two names: nothing here asks `isinstance` about
a class of this folder.

These modules stand at the edge: they read the clock and the environment of the task themselves. They know the
engine's public API (`pliant.train`) and nothing about servers. Nothing in Pliant imports them.
"""
