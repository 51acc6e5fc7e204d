"""The gateway: queues in front of kernels, and the protocols that people speak."""
