"""Pliant's sentences as IBM's clients read them: with the ids and the options that they know. Pure.

A job is called by its exec's id. What is a path, or a command of `pliant` to copy, stays as it is.
"""

import re
from typing import Final

_JOB: Final = re.compile(r"`pliant [^`]*`|(?<![\w./-])job-([1-9][0-9]*)(?![\w-])")
_PLAIN: Final = ("`--fixed 1`", "`--exec-start PyTorch`")
"""What makes a job of one plain process."""


def reword(text: str) -> str:
    """Return a sentence with `wmla-3` for `job-3`, and `wmla-3.1` for its task `job-3.1`."""
    return _JOB.sub(lambda found: found[0] if found[1] is None else f"wmla-{found[1]}", text.replace(*_PLAIN))
