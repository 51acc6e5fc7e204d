"""The verbs on jobs."""
