"""Calls of a stranger's code: whatever it raises is an `AdviserFailure` that says so in one line, and where."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pliant.tune.advice import AdviserFailure

MAX_SHOWN: Final = 500


@contextmanager
def failures_of(who: str, what: str, folder: Path) -> Iterator[None]:
    """Let all that is raised be an `AdviserFailure`, even a wish to end the process; its traceback is printed.

    Args:
        who: the algorithm, as people call it.
        what: what of it is called.
        folder: where its code is.
    """
    try:
        yield
    except AdviserFailure:
        raise
    except BaseException as error:  # noqa: BLE001 (a stranger's code may raise anything)
        advice = "; install it with an environment that has it" if isinstance(error, ModuleNotFoundError) else ""
        raise AdviserFailure(f"{who} raised {described(error)} in {what}{_place(error, folder)}{advice}") from None


def described(error: BaseException) -> str:
    """Return the kind and the message of an error, on one line; also of one whose message cannot be asked for."""
    try:
        kind = shown(str.__str__(type.__dict__["__name__"].__get__(type(error))))
        text = shown(str(error))
    except BaseException:  # noqa: BLE001 (what makes the text is a stranger's, too)
        return "an error that cannot be shown"
    return f"{kind}: {text}" if text else kind


def shown(text: str, limit: int = MAX_SHOWN) -> str:
    """Return a stranger's text on one line, shortened, without what moves a cursor."""
    exact = str.__str__(text)  # of a subclass, whose methods may be anything
    cut = exact[:limit] + "…" * (len(exact) > limit)
    return "".join(one if one.isprintable() else " " if one.isspace() else "\ufffd" for one in cut).strip()


def _place(error: BaseException, folder: Path) -> str:
    """Print the traceback of an error; return where in a folder it was raised."""
    try:
        traceback.print_exception(error)
        frames = traceback.extract_tb(error.__traceback__)
        there = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
        return f" ({Path(there[-1].filename).relative_to(folder)}:{there[-1].lineno})" if there else ""
    except BaseException:  # noqa: BLE001 (printing an error calls its code)
        return ""
