"""The server's process: who leads, where it listens, what it is made of, and how it ends."""
