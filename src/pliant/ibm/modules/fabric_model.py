"""`from fabric_model import FabricModel`: the name that IBM's samples use."""

from pliant.ibm.modules.pyedt.model import FabricModel

__all__ = ["FabricModel"]
