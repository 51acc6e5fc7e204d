"""The command `version`; it needs nothing of what other commands need, and imports none of it."""

import json

import typer

from pliant import __version__
from pliant.cli.options import JsonOption


def version(as_json: JsonOption = False) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": __version__}, indent=2) if as_json else f"pliant {__version__}")
