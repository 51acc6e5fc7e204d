"""Remembers jobs, tasks, events, metrics and usage in a SQL database. The only room that knows SQLAlchemy."""
