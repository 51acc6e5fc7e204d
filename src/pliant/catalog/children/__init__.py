"""Child processes of the server: they import data sets, build environments and try interpreters."""
