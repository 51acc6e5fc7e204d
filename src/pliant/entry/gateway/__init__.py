"""The processes that answer requests for endpoints (see `launch`)."""
