"""Imports a table: checks every row, describes the columns, deals the rows out. Knows no server.

The table is read twice, row by row: first it is checked, counted and described, then it is written as `train.csv`,
`validation.csv` and `test.csv`: UTF-8, commas, with a header, rows in their order.
"""

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pliant.catalog.datasets.formats.parts import RowDealer
from pliant.core.dataset import SPLITS, Column, Content, CsvRule, ImportProgress, SplitRule
from pliant.core.errors import InvalidInput, Problem
from pliant.files.members import MAX_PROBLEMS

ReportProgress = Callable[[ImportProgress], None]

MAX_COLUMNS: Final = 10_000
MAX_VALUE_CHARACTERS: Final = 1 << 20
_SAMPLE_BYTES: Final = 1 << 16
_DELIMITERS: Final = ",;\t|"
_MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_BOOLEAN: Final = frozenset({"true", "false", "yes", "no"})
_TELL_EVERY: Final = 10_000


@dataclass(slots=True)
class _ColumnFacts:
    """What is known of a column so far."""

    name: str
    num_missing: int = 0
    kinds: set[str] = field(default_factory=set)
    minimum: float = math.inf
    maximum: float = -math.inf

    def take(self, value: str) -> None:
        text = value.strip()
        if text.lower() in _MISSING:
            self.num_missing += 1
            return
        if "text" in self.kinds:
            return
        self.kinds.add(kind := _kind(text))
        if kind in ("integer", "number"):
            number = float(text)
            self.minimum, self.maximum = min(self.minimum, number), max(self.maximum, number)

    def column(self) -> Column:
        match sorted(self.kinds):
            case []:
                return Column(name=self.name, kind="empty", num_missing=self.num_missing)
            case ["boolean"]:
                return Column(name=self.name, kind="boolean", num_missing=self.num_missing)
            case ["integer"] | ["number"] | ["integer", "number"]:
                return Column(
                    name=self.name,
                    kind="integer" if self.kinds == {"integer"} else "number",
                    num_missing=self.num_missing,
                    minimum=self.minimum,
                    maximum=self.maximum,
                )
            case _:
                return Column(name=self.name, kind="text", num_missing=self.num_missing)


def _kind(text: str) -> str:
    if text.lower() in _BOOLEAN:
        return "boolean"
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return "text"
    if not math.isfinite(number):
        return "text"
    return "integer" if text.lstrip("+-").isdigit() else "number"


def import_csv(source: Path, out: Path, rule: CsvRule, split: SplitRule, report: ReportProgress) -> Content:
    """Write the rows of a table into the folder `out` by parts and return what was found.

    Raises:
        InvalidInput: it is no table, or rows of it are wrong; up to twenty are named.
        OSError: the disk does not take it.
    """
    out.mkdir()
    table = _Table(path=source, delimiter=rule.delimiter or sniff_delimiter(source), header=rule.header)
    columns, num_rows = _describe(table, report)
    if not num_rows:
        raise _wrong("it has no rows; give a table with some")
    dealer = RowDealer(num_rows, split)
    splits: dict[str, int] = dict.fromkeys(SPLITS, 0)
    total = source.stat().st_size
    with ExitStack() as stack:
        writers: dict[str, Any] = {}
        for number, (_, row) in enumerate(table.rows()):
            part = dealer.deal()
            if part not in writers:
                file = stack.enter_context((out / f"{part}.csv").open("x", encoding="utf-8", newline=""))
                writers[part] = csv.writer(file, lineterminator="\n")
                writers[part].writerow([column.name for column in columns])
            writers[part].writerow(row)
            splits[part] += 1
            if number % _TELL_EVERY == 0:
                report(ImportProgress(phase="writing rows", bytes_done=total * number // num_rows, bytes_total=total))
    there = [part for part in SPLITS if splits[part]]
    return Content(
        splits={part: splits[part] for part in there},
        parts={part: f"{part}.csv" for part in there},
        columns=tuple(columns),
    )


def sniff_delimiter(path: Path) -> str:
    """Return the delimiter that a table seems to have; a comma if it has but one column."""
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES).decode("utf-8-sig", "replace")
    try:
        found = csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
    except csv.Error:
        first = sample.splitlines()[0] if sample else ""
        found = max(_DELIMITERS, key=first.count)
    return found if found in _DELIMITERS else ","


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    path: Path
    delimiter: str
    header: bool

    def names(self) -> list[str]:
        """Return the names of the columns.

        Raises:
            InvalidInput: there are none, too many, or one twice.
        """
        first = next(self._lines(), None)
        if first is None:
            raise _wrong("it is empty; give a table with a header and rows")
        row = first[1]
        if len(row) > MAX_COLUMNS:
            raise _wrong(f"it has {len(row)} columns, more than {MAX_COLUMNS}")
        names = [
            (value.strip() if self.header else "") or f"column_{number}" for number, value in enumerate(row, start=1)
        ]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise _wrong(f"its header has {', '.join(map(repr, twice[:5]))} more than once; rename the columns")
        return names

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of a line and the row that ends there."""
        lines = self._lines()
        if self.header:
            next(lines, None)
        return lines

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(MAX_VALUE_CHARACTERS)
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            try:
                for row in reader:
                    if row:
                        yield reader.line_num, row
            except UnicodeDecodeError as error:
                raise _wrong(
                    f"after line {reader.line_num} it is not UTF-8 (byte {error.object[error.start]:#04x}); "
                    f"save it as UTF-8"
                ) from error
            except csv.Error as error:
                raise _wrong(f"line {reader.line_num} cannot be read ({error}); mend it") from error


def _describe(table: _Table, report: ReportProgress) -> tuple[Sequence[Column], int]:
    _refuse_other_encodings(table.path)
    seen = [_ColumnFacts(name) for name in table.names()]
    total = table.path.stat().st_size
    num_rows = 0
    problems: list[Problem] = []
    for line, row in table.rows():
        if len(row) != len(seen):
            message = f"line {line} has {len(row)} values, not {len(seen)} as the first has; mend it"
            problems.append(Problem(field="source", message=message))
            if len(problems) >= MAX_PROBLEMS:
                break
            continue
        for column, value in zip(seen, row, strict=True):
            column.take(value)
        num_rows += 1
        if num_rows % _TELL_EVERY == 0:
            report(ImportProgress(phase=f"reading rows ({num_rows} so far)", bytes_total=total))
    if problems:
        raise InvalidInput(*problems)
    return [column.column() for column in seen], num_rows


def _refuse_other_encodings(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _wrong("it is UTF-16; save it as UTF-8")
    if b"\0" in head:
        raise _wrong("it holds NUL bytes, as no table does; give a CSV file")


def _wrong(message: str) -> InvalidInput:
    return InvalidInput.at("source", f"the table cannot be imported: {message}")
