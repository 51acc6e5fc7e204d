"""What a task has to say, until it is stored."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import Progress
from pliant.core.link import Note, Point, Report
from pliant.train.link.outbox import WINDOW, Outbox


def note(number: int) -> Note:
    return Note(message=str(number))


def report(step: int) -> Report:
    progress = Progress(epoch=0, num_epochs=1, step=step, num_steps=9, samples=step, samples_per_s=1.0)
    point = Point(name="loss", step=step, epoch=0, at=0.0, value=1.0)
    return Report(generation=1, progress=progress, points=(point,))


def sent_all(outbox: Outbox) -> list[int]:
    numbers = []
    while (item := outbox.next()) is not None:
        outbox.sent(item)
        numbers.append(item.number)
    return numbers


def test_what_was_sent_stays_until_it_is_stored() -> None:
    outbox = Outbox()
    outbox.put(note(1))
    outbox.put(note(2))
    assert sent_all(outbox) == [1, 2]
    outbox.stored(1)
    assert outbox
    outbox.stored(2)
    assert not outbox


def test_what_was_sent_on_a_lost_connection_comes_first_again() -> None:
    outbox = Outbox()
    for number in (1, 2, 3):
        outbox.put(note(number))
    first = outbox.next()
    assert first is not None
    outbox.sent(first)
    outbox.lost()
    assert sent_all(outbox) == [1, 2, 3]


def test_no_more_than_a_window_is_on_its_way() -> None:
    outbox = Outbox()
    for number in range(WINDOW + 5):
        outbox.put(note(number))
    assert len(sent_all(outbox)) == WINDOW
    outbox.stored(3)
    assert sent_all(outbox) == [WINDOW + 1, WINDOW + 2, WINDOW + 3]


def test_a_report_that_is_being_sent_is_merged_without_losing_a_point() -> None:
    outbox = Outbox()
    outbox.put(report(1))
    on_its_way = outbox.next()
    assert on_its_way is not None
    outbox.put(report(2))
    outbox.sent(on_its_way)
    outbox.stored(on_its_way.number)
    merged = outbox.next()
    assert merged is not None
    assert isinstance(merged.message, Report)
    assert [point.step for point in merged.message.points] == [1, 2]


STEPS = st.lists(st.sampled_from(["put", "send", "store", "lose"]), max_size=60)


@given(STEPS)
def test_whatever_happens_everything_arrives_and_in_order(steps: list[str]) -> None:
    outbox, num_put, arrived, on_line = Outbox(), 0, list[int](), list[int]()
    for step in steps:
        item = outbox.next()
        if step == "put":
            num_put += 1
            outbox.put(note(num_put))
        elif step == "send" and item is not None:
            on_line.append(item.number)
            outbox.sent(item)
        elif step == "store" and on_line:
            arrived += [number for number in on_line if not arrived or number > arrived[-1]]
            on_line.clear()
            outbox.stored(arrived[-1])
        elif step == "lose":
            on_line.clear()  # lost with the connection
            outbox.lost()
    outbox.lost()
    arrived += [number for number in sent_all(outbox) if not arrived or number > arrived[-1]]
    assert arrived == list(range(1, num_put + 1))
