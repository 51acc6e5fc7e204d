"""What IBM's plug-ins import; on their path alone."""
