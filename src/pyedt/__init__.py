"""`from pyedt.fabric_model import FabricModel` wherever Pliant is installed; see `pliant.ibm.notebook`."""
