"""Rooms that need something of this machine before the server can use them: folders, programs, a first user."""
