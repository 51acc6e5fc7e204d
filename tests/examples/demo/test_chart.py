"""The image that the demo leaves."""

from pathlib import Path

from examples.demo.chart import draw, instants, layers
from examples.demo.recording import Seen
from pliant.core.job import JobId

T0 = 1_000_000.0


def test_the_chart_is_a_png(seen: Seen, tmp_path: Path) -> None:
    draw(seen, tmp_path / "slots.png")

    assert (tmp_path / "slots.png").read_bytes().startswith(b"\x89PNG")


def test_the_drawn_layers_are_the_slots_that_train_and_those_held_besides(seen: Seen) -> None:
    times = [T0 + at for at in (0.0, 0.5, 1.7, 8.0, 14.1, 20.0, 30.0, 60.0, 81.0)]

    training, besides = layers(seen, JobId("job-1"), times)
    assert training == [0, 0, 1, 8, 4, 4, 3, 0, 0]
    assert besides == [0, 1, 7, 0, 0, 0, 0, 0, 0]


def test_every_change_is_drawn(seen: Seen) -> None:
    times = instants(seen)

    assert times == sorted(times)
    assert {T0, T0 + 14.2, T0 + 82.0} <= set(times)
