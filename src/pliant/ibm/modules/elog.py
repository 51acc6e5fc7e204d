"""`from elog import ELog`: append lines that people read to `stdout` in the task's log folder, in IBM's format."""

import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Self

from pliant.ibm.modules.emetrics import log_folder

Values = float | Mapping[str, float]


class ELog:
    """Writes lines; `with ELog.open() as log: log.recordText("…")`."""

    def __init__(self, subId: str | None, f: IO[str] | None) -> None:
        self.trainingId = os.environ.get("TRAINING_ID", os.environ.get("DLI_EXECID", ""))
        self.subId = subId
        self.f = f

    @staticmethod
    def open(subId: str | None = None) -> "ELog":
        """Open the file of this task, or of this trial of it."""
        return ELog(subId, (log_folder(subId) / "stdout").open("a"))

    def recordText(self, text: str) -> None:
        """Append one line after the local time."""
        if self.f is not None:
            self.f.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}\n")
            self.f.flush()

    def recordTrain(
        self,
        title: str,
        iteration: int,
        global_steps: int,
        loss: Values,
        accuracy: float | None = None,
        worker: int = 0,  # noqa: ARG002 (IBM's signature)
    ) -> None:
        """Append the metrics of a training batch; `loss` may be a mapping of metrics, as 5.0 gives them."""
        counts = f"Global steps: {global_steps},\tIteration: {iteration}"
        self.recordText(f"{title},\tTimestamp: {_now_ms()},\t{counts}{_format(loss, accuracy)}")

    def recordTest(
        self,
        title: str,
        loss: Values,
        accuracy: float | None = None,
        worker: int = 0,  # noqa: ARG002 (IBM's signature)
    ) -> None:
        """Append the metrics of a validation; `loss` may be a mapping of metrics, as 5.0 gives them."""
        self.recordText(f"{title},\tTimestamp: {_now_ms()}{_format(loss, accuracy)}")

    def close(self) -> None:
        if self.f is not None:
            self.f.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now_ms() -> int:
    return round(time.time() * 1000)


def _format(loss: Values, accuracy: float | None) -> str:
    if isinstance(loss, Mapping):
        named = {name.capitalize(): value for name, value in loss.items()}
    else:
        named = {"Loss": loss} | ({} if accuracy is None else {"Accuracy": accuracy})
    return "".join(f",\t{name}: {_round(value)}" for name, value in named.items())


def _round(value: float) -> float:
    return float(f"{float(value):.5f}")
