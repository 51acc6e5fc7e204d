"""Runs migrations on the connection that `pliant.store.migrate` hands in. Alembic loads this file by its path."""

from alembic import context

from pliant.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
