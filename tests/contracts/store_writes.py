"""The contract of `Store` over writes: whole or not at all, by many threads at once, and through a SIGKILL."""

import subprocess
import sys
import threading
from typing import Final

import pytest
from tests.contracts.store import a_job, a_task, an_event, messages

from pliant.core.errors import NotFound
from pliant.core.job import JobId
from pliant.core.ports import EventFilter, Store, Writes

_DEADLINE_S: Final = 30.0


class WritesContract:
    """What a caller may rely on of a write; the fixture is `store`."""

    def test_ids_count_from_one_for_every_name(self, store: Store) -> None:
        assert [store.next_id("job"), store.next_id("job"), store.next_id("job-1"), store.next_id("job")] == [
            1,
            2,
            1,
            3,
        ]

    def test_a_write_that_fails_leaves_nothing_behind(self, store: Store) -> None:
        stranger = a_task("job-9.1", job_id="job-9")
        with pytest.raises(NotFound):
            store.write(Writes(jobs=(a_job(),), tasks=(a_task(), stranger), events=(an_event("lost"),)))
        assert store.job(JobId("job-1")) is None
        assert store.tasks() == ()
        assert store.last_seq() == 0
        assert [event.seq for event in store.write(Writes(events=(an_event("next"),)))] == [1]

    def test_threads_that_write_at_once_leave_no_gap_and_no_double(self, store: Store) -> None:
        num_threads, num_writes = 6, 20
        acknowledged: dict[int, list[int]] = {thread: [] for thread in range(num_threads)}
        seen: list[list[int]] = []
        done = threading.Event()

        def write(thread: int) -> None:
            for number in range(num_writes):
                events = (an_event(f"{thread}/{number}/0"), an_event(f"{thread}/{number}/1"))
                acknowledged[thread] += [event.seq for event in store.write(Writes(events=events))]
                store.next_id("job")

        def read() -> None:
            while not done.is_set():
                seen.append([event.seq for event in store.events(EventFilter())])

        writers = [threading.Thread(target=write, args=(thread,)) for thread in range(num_threads)]
        reader = threading.Thread(target=read)
        for thread in [*writers, reader]:
            thread.start()
        for thread in writers:
            thread.join(_DEADLINE_S)
        done.set()
        reader.join(_DEADLINE_S)

        total = num_threads * num_writes * 2
        assert sorted(seq for seqs in acknowledged.values() for seq in seqs) == list(range(1, total + 1))
        assert all(seqs == sorted(seqs) for seqs in acknowledged.values())
        assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in seen), "a reader saw a gap"
        assert store.next_id("job") == num_threads * num_writes + 1


_WRITE_AND_WAIT: Final = """
import sys
from pliant.core.event import Event, EventKind
from pliant.core.ports import Writes
from tests.contracts.store import a_job, an_event

{open_store}
number = 0
while True:
    number += 1
    job_number = store.next_id("job")
    store.write(Writes(jobs=(a_job(f"job-{{job_number}}"),), events=(an_event(str(number)),)))
    print(number, flush=True)
"""


class DurabilityContract:
    """What a store that outlives its process adds.

    Fixture `open_store_source`: Python source that assigns an open store to `store`, on the same data as the fixture.
    """

    def test_an_acknowledged_write_survives_sigkill(self, store: Store, open_store_source: str) -> None:
        source = _WRITE_AND_WAIT.format(open_store=open_store_source)
        with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            watchdog = threading.Timer(_DEADLINE_S, child.kill)
            watchdog.start()
            acknowledged = [child.stdout.readline() for _ in range(10)]
            child.kill()
            acknowledged += child.stdout.readlines()
            watchdog.cancel()
        last = len(acknowledged)
        assert last >= 10
        store.write(Writes(events=(an_event("0"),)))  # waits for what a database still commits for the child
        *found, own = [int(message) for message in messages(store.events(EventFilter()))]
        assert own == 0
        assert found == list(range(1, len(found) + 1))
        assert len(found) in (last, last + 1), "written but killed before it said so is the only other case"
        assert len(store.jobs()) == len(found)
        assert store.next_id("job") > last
