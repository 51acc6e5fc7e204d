"""What crosses a connection: REST bodies (`api`) and control-link messages (`link`). Shapes only, no logic."""
