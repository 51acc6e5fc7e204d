"""The `pliant` command: verbs over the REST API. Imports no torch, no database and no web framework."""
