"""`from emetrics import EMetrics`: append metrics as JSON lines to `evaluation-metrics.txt` in the task's log folder.

Keeps IBM's file formats to the byte; a reader of theirs reads ours.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

INTEGER: Final = 2
FLOAT: Final = 3
RECORD_INDEX: Final = 1


def log_folder(sub_id: str | None) -> Path:
    """Return where a task's log files go: LOG_DIR, else JOB_STATE_DIR/logs, else /tmp; made if missing."""
    if "LOG_DIR" in os.environ:
        folder = Path(os.environ["LOG_DIR"])
    elif "JOB_STATE_DIR" in os.environ:
        folder = Path(os.environ["JOB_STATE_DIR"]) / "logs"
    else:
        folder = Path("/tmp")
    if sub_id is not None:
        folder /= str(sub_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class EMetrics:
    """Writes metrics; `with EMetrics.open() as em: em.record(EMetrics.TEST_GROUP, step, {"accuracy": 0.9})`.

    With a sub id (an HPO trial's, from SUBID) closing also writes `RESULT_DIR/val_dict_list.json`: one object per
    record of the test group, `steps` and the metrics.
    """

    TEST_GROUP = "test"
    TRAIN_GROUP = "train"

    def __init__(self, subId: str | None, f: IO[str] | None) -> None:
        self.trainingId = os.environ.get("TRAINING_ID", "")
        self.rIndex = RECORD_INDEX
        self.subId = subId
        self.f = f
        self.test_history: list[dict[str, Any]] = []

    @staticmethod
    def open(subId: str | None = None) -> "EMetrics":
        """Open the file of this task, or of this trial of it."""
        return EMetrics(subId, (log_folder(subId) / "evaluation-metrics.txt").open("a"))

    def record(self, group: str, iteration: int, values: Mapping[str, Any]) -> None:
        """Append one line: the metrics in `values` as they stood after `iteration`."""
        if self.subId and group == self.TEST_GROUP:
            self.test_history.append({"steps": iteration, **values})
        if self.f is None:
            return
        meta = {"training_id": self.trainingId, "time": int(time.time() * 1000), "rindex": self.rIndex}
        if self.subId:
            meta["subid"] = str(self.subId)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.%s")
        line = {
            "meta": meta,
            "grouplabel": group,
            "etimes": {"iteration": _add_type(iteration), "time_stamp": _add_type(stamp)},
            "values": {name: _add_type(value) for name, value in values.items()},
        }
        self.f.write(json.dumps(line) + "\n")
        self.f.flush()

    def close(self) -> None:
        """Close the file; with a sub id, write `val_dict_list.json`."""
        if self.f is not None:
            self.f.close()
        if self.subId:
            folder = Path(os.environ.get("RESULT_DIR", "/tmp"))
            (folder / "val_dict_list.json").write_text(json.dumps(self.test_history))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _add_type(value: object) -> dict[str, int | str]:
    match value:
        case int():
            return {"type": INTEGER, "value": str(value)}
        case float():
            return {"type": FLOAT, "value": str(value)}
        case _:
            return {"value": str(value)}
