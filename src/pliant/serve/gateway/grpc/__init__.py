"""The gateway over gRPC: the only place that imports grpc, and of the processes only a gateway imports it."""
