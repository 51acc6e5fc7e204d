"""A progress bar on the terminal; nothing where there is none, so that scripts read no bars."""

from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from pliant.cli.screen import console


class Bar:
    """One bar on stderr, as long as its block runs."""

    def __init__(self, text: str, *, unit_is_bytes: bool) -> None:
        terminal = console(stderr=True)
        counts: tuple[ProgressColumn, ...] = (MofNCompleteColumn(),)
        if unit_is_bytes:
            counts = (DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), BarColumn(), *counts)
        self._progress = Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal)
        self._task = self._progress.add_task(text, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def at(self, done: int, total: int) -> None:
        """Show how far it is; a total of 0 is not known."""
        self._progress.update(self._task, completed=done, total=total or None)

    def say(self, text: str) -> None:
        """Say what goes on."""
        self._progress.update(self._task, description=text)
