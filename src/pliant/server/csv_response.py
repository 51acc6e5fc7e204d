"""Answers as tables for spreadsheets (RFC 4180), sent as attachments.

A spreadsheet takes a cell that begins with one of a few signs for a formula and runs it. Names are chosen by people,
so such a cell gets a quote before it, which spreadsheets hide.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from starlette.responses import Response

from pliant.server.file_response import attachment

MEDIA_TYPE: Final = "text/csv"
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
Cell = str | int | float


class CsvResponse(Response):
    """A table with a head."""

    media_type = MEDIA_TYPE

    def __init__(self, head: Sequence[str], rows: Iterable[Sequence[Cell]], *, file_name: str) -> None:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(head)
        writer.writerows([_cell(value) for value in row] for row in rows)
        super().__init__(text.getvalue(), headers={"Content-Disposition": attachment(file_name)})


def _cell(value: Cell) -> Cell:
    is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA)
    return f"'{value}" if is_formula else value
