"""The two ends of a tunnel: frames with back pressure over a WebSocket, and what a sidecar does at the inner end."""
