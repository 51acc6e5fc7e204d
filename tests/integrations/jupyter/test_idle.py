"""When a notebook server counts as unused."""

import os
import subprocess
import sys

import pytest
from tests.tunnel.ends import eventually

from pliant.integrations.jupyter.idle import IdleWatch, processor_s

IDLE_S = 100.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(clock: Clock) -> IdleWatch:
    return IdleWatch(IDLE_S, clock)


def look(state: IdleWatch, *, is_busy: bool = False, unused_s: float = float("inf"), processor_s: float = 0.0) -> bool:
    return state.look(is_busy=is_busy, unused_s=unused_s, processor_s=processor_s)


def test_what_was_never_used_is_idle_after_its_time(state: IdleWatch, clock: Clock) -> None:
    clock.now += IDLE_S - 1
    assert not look(state)
    clock.now += 1
    assert look(state)


def test_a_kernel_that_runs_something_is_used_however_long_it_says_nothing(state: IdleWatch, clock: Clock) -> None:
    for _ in range(50):
        clock.now += IDLE_S
        assert not look(state, is_busy=True, unused_s=clock.now)
    clock.now += IDLE_S
    assert look(state)


def test_what_a_kernel_or_a_terminal_did_last_counts(state: IdleWatch, clock: Clock) -> None:
    clock.now += 2 * IDLE_S
    assert not look(state, unused_s=IDLE_S / 2)
    clock.now += IDLE_S / 2
    assert look(state, unused_s=IDLE_S)


def test_what_is_opened_or_saved_counts(state: IdleWatch, clock: Clock) -> None:
    clock.now += IDLE_S - 1
    state.note_use()
    clock.now += IDLE_S - 1
    assert not look(state)
    clock.now += 1
    assert look(state)


def test_programs_in_terminals_count_while_they_compute_and_not_while_they_wait(state: IdleWatch, clock: Clock) -> None:
    used_s = 0.0
    for _ in range(30):
        clock.now += 15
        used_s += 1.0
        assert not look(state, processor_s=used_s), "a fifteenth of a processor is a training that waits for its data"
    ended = [look(state, processor_s=used_s) for clock.now in (clock.now + 15, clock.now + IDLE_S)]
    assert ended == [False, True]
    for _ in range(20):  # an editor, or `watch`
        clock.now += 15
        used_s += 0.1
        assert look(state, processor_s=used_s)


def test_the_processor_time_of_a_terminal_is_that_of_all_in_its_session() -> None:
    spin = "import os\nos.fork() and exit(os.wait()[1])\nwhile os.times().user < 0.3: pass\nprint(flush=True); input()"
    busy = subprocess.Popen([sys.executable, "-c", spin], start_new_session=True, stdin=-1, stdout=-1)
    waits = subprocess.Popen([sys.executable, "-c", "input()"], start_new_session=True, stdin=-1)
    with busy, waits:
        assert busy.stdout is not None
        assert busy.stdout.readline() == b"\n"
        eventually(lambda: processor_s({busy.pid}) >= 0.3)
        assert processor_s({busy.pid, waits.pid}) >= processor_s({busy.pid})
        assert processor_s(set()) == 0.0
        assert processor_s({os.getpid() + 2**22}) == 0.0
        for one in (busy, waits):
            assert one.stdin is not None
            one.stdin.write(b"\n")
