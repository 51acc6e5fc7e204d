"""Contract suites that every adapter of a port passes, and builders for tests."""
