"""What the demo's terminal shows."""

import io
import re

import pytest
from rich.console import Console

from examples.demo.recording import Recording, Seen
from examples.demo.screen import Lines, Screen, render

T0 = 1_000_000.0


def text_of(seen: Seen, width: int, height: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(seen, width, height))
    return capture.get()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (160, 50)])
def test_the_picture_fits_the_terminal(seen: Seen, width: int, height: int) -> None:
    lines = text_of(seen, width, height).splitlines()

    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_the_chart_stacks_the_jobs_under_the_capacity(recording: Recording) -> None:
    lines = text_of(recording.at(T0 + 30.0), 86, 40).splitlines()

    rows = [line[4:] for line in lines if re.match(r"  \d ", line)]
    assert len(rows) == 8
    column_of = {at: int(at * 80 / 60) for at in (2, 8, 20, 40)}
    assert [row[column_of[2]] for row in rows] == ["░"] * 7 + ["█"]
    assert [row[column_of[8]] for row in rows] == ["█"] * 8
    assert [row[column_of[20]] for row in rows] == ["█"] * 8
    assert {row[column_of[40] :].strip() for row in rows} == {""}


def test_every_decision_is_shown_with_its_reason(seen: Seen) -> None:
    text = text_of(seen, 160, 50)

    assert "5 → 8  Alone, so it may have all 8 slots." in text
    assert "Priority 10000 of 15000" in text


def test_a_job_shows_epoch_step_loss_accuracy_speed_and_time_left(seen: Seen) -> None:
    text = text_of(seen, 160, 50)

    for part in ("48/60", "480/600", "0.0312", "0.974", "5120", "12 s"):
        assert part in text


def test_without_a_terminal_every_line_is_printed_once(recording: Recording) -> None:
    out = io.StringIO()
    lines = Lines(Console(file=out, width=80), lambda: recording.at(T0 + 82.0))

    lines.start()
    lines.tick()
    lines.stop()

    text = out.getvalue()
    assert text.count("Priority 10000 of 15000: 5.33 of 8 slots, rounded to 5.") == 1
    assert text.count("Killed by signal 9.") == 1
    assert text.count("step 480/600") == 1
    assert text.count("B arrives: 4 and 4") == 1


def test_the_screen_starts_and_stops(recording: Recording) -> None:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100, height=30, force_terminal=True), lambda: recording.at(T0 + 82.0))

    screen.start()
    screen.stop()

    assert "decisions" in out.getvalue()
