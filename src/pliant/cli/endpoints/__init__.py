"""Commands about models that answer requests."""
