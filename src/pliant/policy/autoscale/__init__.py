"""The autoscaler: how many kernels a version of an endpoint wants, and why. `load.take` and `demand.decide` are all."""
