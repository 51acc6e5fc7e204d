"""The verbs on people, their tokens, and the audit log."""
