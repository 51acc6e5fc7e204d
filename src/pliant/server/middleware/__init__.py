"""What every request passes: who asks, may they, how large it is, what is written down, and how errors are answered."""
