"""Users, their passwords, sessions and tokens, and authentication by them. The only room that knows argon2."""
