"""`import redhareapiversion`: kernels import it before `redhareapi`, and need nothing of it."""

version = "1.0"
