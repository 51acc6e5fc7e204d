"""The name that IBM's 4.8 notebooks use."""

from pliant.ibm.notebook import FabricModel

__all__ = ["FabricModel"]
