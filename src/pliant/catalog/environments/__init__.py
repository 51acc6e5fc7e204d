"""EnvironmentCatalog: what people name, how they are built, and where their interpreters are."""
