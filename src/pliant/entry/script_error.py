"""What a person's script has raised, as people want to read it: from their own code on, and in a line."""

import traceback
from pathlib import Path


def of_the_user(error: BaseException, script: Path) -> traceback.TracebackException:
    """Return the traceback from the script's first frame on."""
    found = traceback.TracebackException.from_exception(error)
    places = [place for place, frame in enumerate(found.stack) if frame.filename == str(script)]
    if places:
        found.stack = traceback.StackSummary.from_list(list(found.stack)[places[0] :])
    return found


def in_a_line(error: BaseException) -> str:
    """Return kind and message of an error; line breaks, and what a progress bar has left in it, are blanks."""
    lines = "".join(traceback.format_exception_only(error)).strip().split("\n")
    said = lines[-1:] if isinstance(error, SyntaxError) else lines  # before its last line stands where it is
    return " ".join(" ".join(said).split())[:1000]
