"""The verbs of a server's operator: the server itself, queues, retention and backup."""
