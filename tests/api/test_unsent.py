"""The file of what a task could not say: what is put in comes out, the newest if not all; a stranger's says nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.api.link import MAX_FRAME_BYTES, encode
from pliant.api.unsent import MAX_MESSAGES, pack, unpack
from pliant.core.errors import InvalidInput
from pliant.core.job import Progress, TaskId
from pliant.core.link import Failed, Finished, FromTask, Hello, Note, Point, Pulse, Report
from pliant.core.ports import MAX_UNSENT_BYTES

TASK = TaskId("job-1.1")
OWN = '{"task": "job-1.1"}\n'
FINISHED = encode(Finished(step=4), 7)


def report(step: int, value: float = 0.5, num_points: int = 1) -> Report:
    progress = Progress(epoch=1, num_epochs=1, step=step, num_steps=9, samples=step, samples_per_s=1.0)
    points = tuple(Point(name=f"m{n}", step=step, epoch=1, at=1.5, value=value) for n in range(num_points))
    return Report(generation=1, progress=progress, points=points)


said: st.SearchStrategy[FromTask] = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: Note(message=text)),
    st.builds(report, st.integers(0, 9), st.floats(allow_nan=False)),
    st.builds(Finished, step=st.integers(0, 9), digest=st.text("0123456789abcdef")),
    st.just(Failed(error="ValueError: no", traceback='Traceback:\n  File "train.py"\r\n\u2028ü', step=3)),
)


@given(st.lists(said, max_size=8), st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_what_is_put_in_comes_out(messages: Sequence[FromTask], first: int, gap: int) -> None:
    numbered = tuple((first + gap * index, message) for index, message in enumerate(messages))

    content, is_whole = pack(TASK, numbered)

    assert is_whole
    assert unpack(content.decode(), TASK) == numbered


@pytest.mark.parametrize(
    ("num_messages", "num_points"), [(3000, 1), (60, 1000)], ids=["too many messages", "too many bytes"]
)
def test_of_what_has_no_room_the_newest_is_kept_and_the_rest_is_said_to_be_lost(
    num_messages: int, num_points: int
) -> None:
    numbered = [(number, report(number, num_points=num_points)) for number in range(1, num_messages + 1)]

    content, is_whole = pack(TASK, numbered)

    assert not is_whole
    assert len(content) <= MAX_UNSENT_BYTES
    (lost_to, note), *kept = unpack(content.decode(), TASK)
    assert kept == numbered[lost_to:]
    assert kept
    assert note == Note(
        message=f"the server was away for long: the {lost_to} oldest messages of {TASK} that it had not stored are lost"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "does not begin as one of job-1.1 does"),
        (f'{{"task": "job-1.2"}}\n{FINISHED}\n', "does not begin as one of job-1.1 does"),
        (f"{FINISHED}\n", "does not begin as one of job-1.1 does"),
        (OWN.strip(), "its last line has no end"),
        (f"{OWN}{FINISHED}", "its last line has no end"),
        (f"{OWN}\n", "valid JSON"),
        (f"{OWN}junk\n", "valid JSON"),
        (f"{OWN}{'[' * 100_000}\n", "valid JSON"),
        (f'{OWN}{{"kind":"nonsense","number":1}}\n', "kind"),
        (f'{OWN}{{"kind":"dismiss","reason":"no","number":1}}\n', "kind"),
        (f"{OWN}{encode(Hello(task_id=TASK, pid=1))}\n", "'hello' is said over a link alone"),
        (f"{OWN}{encode(Pulse())}\n", "'pulse' is said over a link alone"),
        (f"{OWN}{encode(Finished(step=4))}\n", "message 0 does not follow"),
        (f"{OWN}{FINISHED}\n{FINISHED}\n", "message 7 does not follow"),
        (f"{OWN}{FINISHED}\n{encode(Note(message='earlier'), 6)}\n", "message 6 does not follow"),
        (OWN + FINISHED.replace("4", '"4 steps"', 1) + "\n", "step"),
        (OWN + encode(Note(message="x" * MAX_FRAME_BYTES), 1) + "\n", "a message of"),
        (OWN + "\n" * (MAX_MESSAGES + 1), f"at most {MAX_MESSAGES} are taken"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) and " " in value and "{" not in value else "",
)
def test_what_is_no_file_of_the_task_s_is_refused_whole(content: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        unpack(content, TASK)

    assert why in str(refused.value)
