"""The agent of a machine that joins a server: the process, and what of the machine it opens for it."""
