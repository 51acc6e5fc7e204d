"""${message}."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "${up_revision}"
down_revision: Final[str | None] = ${repr(down_revision)}


def upgrade() -> None:
    """Apply."""
    ${upgrades if upgrades else "pass"}
