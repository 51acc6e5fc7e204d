"""What a job has reported for its trackers: nothing is lost by a kill, nothing is read twice, and nothing harms."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pliant.core.job_params import MAX_PARAMS
from pliant.tracking import journal
from pliant.tracking.journal import JournalReader, JournalWriter, TrackedPoint


def point(step: int, name: str = "loss", value: float = 0.5) -> TrackedPoint:
    return TrackedPoint(name=name, step=step, at=float(step), value=value)


def write(path: Path, *points: TrackedPoint) -> None:
    writer = JournalWriter(path)
    writer.add_points(points)
    writer.close()


def test_what_is_added_is_read_once_and_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "journal"
    reader = JournalReader(path)
    assert not reader.read(), "there is none yet"
    write(path, point(1), point(1, "accuracy"), point(2))
    assert reader.read().points == (point(1), point(1, "accuracy"), point(2))
    assert not reader.read()
    write(path, point(3))
    assert reader.read().points == (point(3),)


def test_a_step_that_comes_again_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, point(1), point(2))
    write(path, point(2, value=0.7), point(3), point(1))
    assert JournalReader(path).read().points == (point(1), point(2), point(3))


def test_a_reader_goes_on_where_another_one_was(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, point(1), point(2))
    first = JournalReader(path)
    first.read()
    write(path, point(2), point(3))
    assert JournalReader(path, offset=first.offset, last_steps=first.last_steps).read().points == (point(3),)


def test_a_line_that_a_killed_writer_left_open_spoils_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, point(1))
    with path.open("ab") as file:
        file.write(b'{"n":"loss","s":2,')
    reader = JournalReader(path)
    assert reader.read().points == (point(1),)
    write(path, point(3))
    assert reader.read().points == (point(3),)


def test_no_number_is_lost_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, point(1, value=math.inf), point(2, value=math.nan))
    first, second = JournalReader(path).read().points
    assert first.value == math.inf
    assert math.isnan(second.value)


def test_hyperparameters_are_bounded_and_the_newest_count(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    writer = JournalWriter(path)
    writer.add_params({"lr": 0.1, "model": "mlp"})
    writer.add_params({"lr": 0.2})
    writer.close()
    assert JournalReader(path).read().params == {"lr": 0.2, "model": "mlp"}
    with path.open("ab") as file:
        file.write(json.dumps({"p": {str(n): n for n in range(2 * MAX_PARAMS)} | {"x": [1]}}).encode() + b"\n")
    assert len(JournalReader(path).read().params) <= MAX_PARAMS + 2


LINES = st.one_of(
    st.binary(max_size=50),
    st.sampled_from(
        [
            b'{"n":"a","s":1,"t":1,"v":1}',
            b'{"n":"a","s":-1,"t":1,"v":1}',
            b'{"n":"a","s":1e400,"t":1,"v":1}',
            b'{"n":"a","s":true,"t":1,"v":1}',
            b'{"n":"a","s":2,"t":NaN,"v":1}',
            b'{"n":"a","s":3,"t":1,"v":1' + b"0" * 400 + b"}",
            b'{"n":["a"],"s":1,"t":1,"v":1}',
            b'{"p":{"a":{}}}',
            b'{"p":7}',
            b"[" * 5000,
            b"\xff\xfe",
        ]
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=10))
def test_whatever_a_script_writes_there_is_read_without_harm(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"\n".join(lines) + b"\n")
    reader = JournalReader(path)
    points = reader.read().points
    assert reader.offset == path.stat().st_size
    assert all(one.step >= 0 and one.name and isinstance(one.value, float) for one in points)
    assert len({(one.name, one.step) for one in points}) == len(points)


def test_a_line_without_an_end_does_not_hold_up_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_LINE", 100)
    path = tmp_path / "journal"
    path.write_bytes(b"x" * 200)
    reader = JournalReader(path)
    assert not reader.read()
    write(path, point(1))
    assert reader.read().points == (point(1),)


def test_a_file_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, point(1), point(2))
    reader = JournalReader(path)
    reader.read()
    path.unlink()
    write(path, point(3))
    assert reader.read().points == (point(3),)
