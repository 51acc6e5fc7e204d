"""Where processes begin: a file is one of them, `server` another. Settings, clock and signals enter here alone."""
