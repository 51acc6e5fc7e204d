"""`from fabric_model import FabricModel` wherever Pliant is installed; see `pliant.ibm.notebook`."""

from pliant.ibm.notebook import FabricModel

__all__ = ["FabricModel"]
