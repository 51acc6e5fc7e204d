"""What Prometheus and its like read of a server."""
