"""HTTP, server-sent events and control links over the control room; the only room that knows FastAPI."""
