"""The link between a server and the agent of another machine: one TLS connection, a lease, and who may join."""
