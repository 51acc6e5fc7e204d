"""What is kept of jobs that have ended, for how long, and copies of all that a server holds."""
