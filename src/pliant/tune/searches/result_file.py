"""What a script that reports nothing over a link leaves of its metrics: IBM's `val_dict_list.json`.

    [{"steps": 1, "accuracy": 0.6}, {"step": 2, "accuracy": 0.7}]

It is a stranger's: a plain file is read, so much of it at most, and whatever is no number in it is left out.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pliant.files.untrusted.opening import open_file
from pliant.files.untrusted.path import UntrustedPath
from pliant.policy.tuning.intake import SeriesPoint

FILE: Final = "val_dict_list.json"
_MAX_BYTES: Final = 16 << 20
_MAX_NAMES: Final = 1000
_STEPS: Final = ("steps", "step")


def read_results(folder: UntrustedPath) -> Mapping[str, Sequence[SeriesPoint]]:
    """Return the series in a job's result folder, by metric; none if there is no such file, or it is no such list."""
    try:
        with open_file(folder / FILE) as file:
            if file.num_bytes > _MAX_BYTES:
                return {}
            text = file.read_at(0, _MAX_BYTES)
        rows = json.loads(text)
    except (OSError, ValueError, RecursionError, MemoryError):
        return {}
    return _series(rows) if isinstance(rows, list) else {}


def _series(rows: Sequence[Any]) -> Mapping[str, Sequence[SeriesPoint]]:
    series: dict[str, list[SeriesPoint]] = {}
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            continue
        step = next((row[name] for name in _STEPS if _is_number(row.get(name))), place)
        for name, value in row.items():
            if name in _STEPS or not _is_number(value) or (name not in series and len(series) >= _MAX_NAMES):
                continue
            series.setdefault(name, []).append(SeriesPoint(epoch=int(step), step=int(step), value=float(value)))
    return series


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**53 or value != value
