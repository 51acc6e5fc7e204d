"""What control knows of a job, and the only ways to change it: drafts, transitions, exits, messages, losses."""
