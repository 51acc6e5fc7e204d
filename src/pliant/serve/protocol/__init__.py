"""What is said: between gateway and kernels, and by people."""
