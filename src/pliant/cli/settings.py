"""What stands before the verb, or in the environment."""

from dataclasses import dataclass
from pathlib import Path

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which server is meant, and who asks."""

    home: Path
    url: str | None
    token: str | None
    ca: Path | None = None
    """The certificate to know the server by."""


def settings_of(context: typer.Context) -> Settings:
    """Return the settings that the root command left."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings
