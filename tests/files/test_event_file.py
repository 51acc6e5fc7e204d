"""Event files for TensorBoard: what is written is what a reader of the format reads, with right checksums."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st
from tests import event_files

from pliant.files import event_file
from pliant.files.event_file import Scalar

STEPS = st.one_of(st.integers(0, 2**31), st.sampled_from([0, 127, 128, 16383, 16384, 2**21, 2**28, 2**53]))
POINTS = st.lists(st.builds(Scalar, step=STEPS, at=st.floats(0, 2**33), value=st.floats()), max_size=8)


def as_float32(value: float) -> float:
    try:
        (found,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(found)


def test_the_readers_checksum_is_castagnolis() -> None:
    assert event_files.crc32c(b"123456789") == 0xE3069283


@given(tag=st.text(max_size=200).filter(lambda tag: tag.isprintable()), points=POINTS)
def test_a_reader_finds_every_point_with_step_time_and_value(tag: str, points: list[Scalar]) -> None:
    data = event_file.header(5.0) + b"".join(event_file.scalars(tag, points))
    first, *others = event_files.events(data)
    assert (first.version, first.at) == ("brain.Event:2", 5.0)
    assert [(event.step, event.at) for event in others] == [(point.step, point.at) for point in points]
    for event, point in zip(others, points, strict=True):
        (value,) = event.scalars.values()
        assert list(event.scalars) == [tag]
        assert struct.pack("<f", value) == struct.pack("<f", as_float32(point.value)) or math.isnan(point.value)


def test_a_text_is_one_for_the_page_of_texts() -> None:
    (event,) = event_files.events(event_file.text("params/text_summary", 7.0, "| ä |"))
    assert event.texts == {"params/text_summary": "| ä |"}


def test_a_table_keeps_what_people_named_in_its_cells() -> None:
    table = event_file.table({"a|b": "x\n| y |", "<img src=x>": "`code`"})
    assert table.splitlines()[2:] == ["| a\\|b | x \\| y \\| |", "| &lt;img src=x> | \\`code\\` |"]


def test_names_of_files_are_those_that_tensorboard_looks_for() -> None:
    assert event_file.name_of_file(1795412850.9, "job-2") == "events.out.tfevents.1795412850.job-2"
