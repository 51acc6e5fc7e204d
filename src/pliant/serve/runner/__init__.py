"""Inside a kernel: takes requests from the gateway in batches, and has a model answer them."""
