"""IBM's clients and scripts over Pliant: its REST API (`rest`) and its module names on a job's path (`modules`)."""
