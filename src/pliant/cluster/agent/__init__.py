"""What runs on every node: it owns the slots, starts and watches processes, and records them."""
