"""What the client offers of each noun."""
