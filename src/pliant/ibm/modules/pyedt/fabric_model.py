"""`from pyedt.fabric_model import FabricModel`: the name that IBM's 4.8 notebooks use."""

from pliant.ibm.modules.pyedt.model import FabricModel

__all__ = ["FabricModel"]
