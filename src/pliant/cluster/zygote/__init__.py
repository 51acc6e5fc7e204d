"""The parent of every task, what it says to the agent, and what a forked child does to become a task."""
