"""The sum of gradients and metrics over virtual workers and tasks."""
