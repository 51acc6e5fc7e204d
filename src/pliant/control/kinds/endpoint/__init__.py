"""Endpoints: jobs whose tasks are kernels, of which there are as many as the load needs."""
