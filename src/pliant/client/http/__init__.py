"""Requests, streams and credentials: how the client reaches a server."""
