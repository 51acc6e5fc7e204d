"""The picture that the demo leaves."""

from pathlib import Path

from tests.examples.serve_demo.conftest import ENDPOINT, T0, answers, make_recording

from examples.demo.chart import instants, layers
from examples.demo.recording import Answer, Seen
from examples.serve_demo.chart import draw, latencies, per_second


def test_the_chart_is_a_png(seen: Seen, tmp_path: Path) -> None:
    draw(seen, tmp_path / "serving.png")

    assert (tmp_path / "serving.png").read_bytes().startswith(b"\x89PNG")


def test_a_chart_of_nothing_and_one_of_failures_alone_can_be_drawn(tmp_path: Path) -> None:
    failed = Answer(intended_at=T0 + 3, sent_at=T0 + 3, done_at=T0 + 4, status=503, fault="no kernel")

    for number, some in enumerate(([], [failed])):
        draw(make_recording(some).at(T0 + 42.0), tmp_path / f"{number}.png")

    assert len(list(tmp_path.glob("*.png"))) == 2


def test_kernels_that_load_and_those_that_answer_are_told_apart(seen: Seen) -> None:
    times = [T0 + at for at in (1.0, 2.2, 3.0, 11.3, 12.3, 13.0, 23.95, 26.0)]

    answering, besides = layers(seen, ENDPOINT, times)

    assert answering == [0, 0, 1, 1, 2, 4, 2, 1]
    assert besides == [0, 1, 0, 1, 2, 0, 2, 0]
    assert {T0 + 11.5, T0 + 12.4} <= set(instants(seen))


def test_requests_are_counted_by_the_second(seen: Seen) -> None:
    counts = per_second(seen, [answer.intended_at for answer in seen.answers])

    assert (counts[:4], counts[5], counts[12], counts[41]) == ([0] * 4, 2, 10, 0)
    assert sum(counts) == 111
    assert per_second(seen, [T0 - 1.0, T0 + 99.0]) == [0] * 43


def test_latencies_belong_to_the_second_of_the_sending_and_leave_failures_out(seen: Seen) -> None:
    failed = Answer(intended_at=T0 + 12.0, sent_at=T0 + 12.0, done_at=T0 + 40.0, status=0, fault="ReadTimeout")

    found = latencies(make_recording([failed, *answers()]).at(T0 + 42.0))

    assert found == latencies(seen)
    assert [round(value) for value in found[12]] == [1000] * 10
