"""What a task has to say, until it is stored."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import Progress, TaskId
from pliant.core.link import Histograms, Note, Point, Report, Unreachable
from pliant.train.link.send_queue import MAX_HISTOGRAMS, WINDOW, SendQueue


def note(number: int) -> Note:
    return Note(message=str(number))


def report(step: int) -> Report:
    progress = Progress(epoch=0, num_epochs=1, step=step, num_steps=9, samples=step, samples_per_s=1.0)
    point = Point(name="loss", step=step, epoch=0, at=0.0, value=1.0)
    return Report(generation=1, progress=progress, points=(point,))


def sent_all(queue: SendQueue) -> list[int]:
    numbers = []
    while (item := queue.next()) is not None:
        queue.mark_sent(item)
        numbers.append(item.number)
    return numbers


def test_what_was_sent_stays_until_it_is_stored() -> None:
    queue = SendQueue()
    queue.put(note(1))
    queue.put(note(2))
    assert sent_all(queue) == [1, 2]
    queue.drop_stored(1)
    assert queue
    queue.drop_stored(2)
    assert not queue


def test_what_was_sent_on_a_lost_connection_comes_first_again() -> None:
    queue = SendQueue()
    for number in (1, 2, 3):
        queue.put(note(number))
    first = queue.next()
    assert first is not None
    queue.mark_sent(first)
    queue.requeue_sent()
    assert sent_all(queue) == [1, 2, 3]


def test_no_more_than_a_window_is_on_its_way() -> None:
    queue = SendQueue()
    for number in range(WINDOW + 5):
        queue.put(note(number))
    assert len(sent_all(queue)) == WINDOW
    queue.drop_stored(3)
    assert sent_all(queue) == [WINDOW + 1, WINDOW + 2, WINDOW + 3]


def test_a_report_that_is_being_sent_is_merged_without_losing_a_point() -> None:
    queue = SendQueue()
    queue.put(report(1))
    on_its_way = queue.next()
    assert on_its_way is not None
    queue.put(report(2))
    queue.mark_sent(on_its_way)
    queue.drop_stored(on_its_way.number)
    merged = queue.next()
    assert merged is not None
    assert isinstance(merged.message, Report)
    assert [point.step for point in merged.message.points] == [1, 2]


STEPS = st.lists(st.sampled_from(["put", "send", "store", "lose"]), max_size=60)


@given(STEPS)
def test_whatever_happens_everything_arrives_and_in_order(steps: list[str]) -> None:
    queue, num_put, arrived, on_line = SendQueue(), 0, list[int](), list[int]()
    for step in steps:
        item = queue.next()
        if step == "put":
            num_put += 1
            queue.put(note(num_put))
        elif step == "send" and item is not None:
            on_line.append(item.number)
            queue.mark_sent(item)
        elif step == "store" and on_line:
            arrived += [number for number in on_line if not arrived or number > arrived[-1]]
            on_line.clear()
            queue.drop_stored(arrived[-1])
        elif step == "lose":
            on_line.clear()  # lost with the connection
            queue.requeue_sent()
    queue.requeue_sent()
    arrived += [number for number in sent_all(queue) if not arrived or number > arrived[-1]]
    assert arrived == list(range(1, num_put + 1))


def test_of_very_many_histograms_that_wait_the_newest_stay() -> None:
    queue = SendQueue()
    queue.put(note(0))
    for _ in range(MAX_HISTOGRAMS + 10):
        queue.put(Histograms(histograms=()))
    queue.put(note(1))
    numbers = [item.number for item in queue.unstored()]
    assert numbers == [1, *range(12, MAX_HISTOGRAMS + 13)]
    assert queue.newest == numbers[-1]


def test_of_who_is_out_of_reach_the_newest_word_waits() -> None:
    queue = SendQueue()
    first, second = Unreachable(peers=(TaskId("job-1.2"),)), Unreachable(peers=())
    for message in (first, note(1), first, second):
        queue.put(message)
    assert [item.message for item in queue.unstored()] == [first, note(1), second]
