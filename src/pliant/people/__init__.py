"""Users, their passwords, sessions and tokens: shows who somebody is. The only room that knows argon2."""
