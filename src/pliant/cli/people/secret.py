"""Asks for passwords: at the terminal without showing them, or from a pipe, a line each. They are never arguments."""

import getpass
import sys

from pliant.core.errors import InvalidInput


def ask(what: str) -> str:
    """Return what a person types, or the next line of a pipe.

    Raises:
        InvalidInput: nothing was given.
    """
    given = getpass.getpass(f"{what}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise InvalidInput.at("", f"{what}: nothing was given; type it, or send it as a line on stdin")
    return given


def ask_new(what: str) -> str:
    """Return a new password; who types it does so twice.

    Raises:
        InvalidInput: nothing was given, or not the same twice.
    """
    given = ask(what)
    if sys.stdin.isatty() and ask(f"{what} again") != given:
        raise InvalidInput.at("", f"{what}: the two are not the same; try again")
    return given
