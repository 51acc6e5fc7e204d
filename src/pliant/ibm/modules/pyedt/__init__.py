"""`FabricModel` on Pliant's engine; `pyedt.fabric_model` is the name that IBM's 4.8 notebooks use."""
