"""The Python client of a Pliant server: one class, one method per route. Knows no server code and no terminal."""

from pliant.client.api import Client

__all__ = ["Client"]
