"""Writes the report of a search into a folder: `report.md`, and a PNG for each chart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pliant.cli.searches.report.canvas import Canvas
from pliant.cli.searches.report.charts import draw_history, draw_importances, draw_slots
from pliant.cli.searches.report.page import SearchReport, write_page
from pliant.cli.searches.report.parallel import draw_parallel
from pliant.cli.searches.report.slots import slots_over_time
from pliant.client import Client
from pliant.core.errors import InvalidInput

PAGE: Final = "report.md"
_FILES: Final = {
    "The course of the search": "history.png",
    "Importances": "importances.png",
    "Values": "values.png",
    "Slots": "slots.png",
}
_NUM_BEST: Final = 10


def fetch_report(client: Client, name: str) -> SearchReport:
    """Return all that there is to say of a search."""
    view = client.searches.get(name)
    trials = tuple(client.searches.trials(name))
    usage = client.usage(since=view.created_at)
    return SearchReport(
        view=view,
        trials=trials,
        best=client.searches.best(name, limit=_NUM_BEST),
        importances=client.searches.importances(name),
        slots=slots_over_time(trials, usage, view.ended_at),
    )


def draw_charts(report: SearchReport) -> Mapping[str, Canvas]:
    """Return the charts by their files."""
    settings, importances = report.view.settings, report.importances
    return {
        "history.png": draw_history(settings, report.trials),
        "importances.png": draw_importances(importances.importances, importances.reason),
        "values.png": draw_parallel(settings, report.trials, list(importances.importances)),
        "slots.png": draw_slots(report.slots),
    }


def write_report(report: SearchReport, folder: Path) -> Path:
    """Write a report, over one that is there; return its page.

    Raises:
        InvalidInput: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, canvas in draw_charts(report).items():
            canvas.png().save(folder / name, optimize=True)
        page = folder / PAGE
        page.write_text(write_page(report, _FILES), encoding="utf-8")
    except OSError as error:
        message = f"{str(folder)!r} cannot be written ({error.strerror or error}); name another folder"
        raise InvalidInput.at("--output", message) from error
    return page
