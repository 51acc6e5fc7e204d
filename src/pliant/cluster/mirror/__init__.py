"""What a machine has of the state folder that does not see the server's: what its tasks need, and what they write.

Each path of the state folder that a task may reach is brought to the same path here, by content hash, and what it
writes goes back: logs while it runs, other files when they rest, all of it before its exit is told.
"""
