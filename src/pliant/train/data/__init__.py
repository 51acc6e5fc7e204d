"""Which samples a step uses, in what order, and how they get into memory."""
