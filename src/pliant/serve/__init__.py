"""Inference: the gateway that takes requests, and the kernels that answer them."""
