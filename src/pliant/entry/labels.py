"""Labels of a machine, as options give them: `NAME=VALUE`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pliant.core.errors import Problem

_LABEL: Final = re.compile(r"[A-Za-z0-9._/-]{1,60}=[A-Za-z0-9._/-]{0,60}")


def read_labels(labels: Sequence[str]) -> dict[str, str]:
    """Return the labels; those that `label_problems` names are left out."""
    return dict(label.split("=", 1) for label in labels if _LABEL.fullmatch(label))


def label_problems(labels: Sequence[str]) -> Iterator[Problem]:
    """Yield what is wrong with labels."""
    for label in labels:
        if not _LABEL.fullmatch(label):
            message = f"{label!r:.80} is no label; give NAME=VALUE of letters, digits, '.', '_', '/' and '-'"
            yield Problem(field="--label", message=message)
    names = [label.partition("=")[0] for label in labels]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield Problem(field="--label", message=f"{', '.join(twice)}: given twice; a machine has one value of each")
