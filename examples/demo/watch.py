"""Two threads that look at the server as any client could: one follows its events, one asks for state and usage."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.demo.recording import Recording
from pliant.client import Client
from pliant.core.errors import PliantError

PERIOD_S = 0.2


@contextmanager
def watching(home: Path, recording: Recording) -> Iterator[None]:
    """Keep the recording of the server of this home up to date while the block runs."""
    stop = threading.Event()
    events, state = Client.from_home(home), Client.from_home(home)

    def guarded(look: Callable[[], None]) -> None:
        try:
            look()
        except PliantError as error:
            if not stop.is_set():
                recording.fail(error)

    def follow_events() -> None:
        for event in events.stream(after=0):
            if stop.is_set():
                return
            recording.add_event(event)

    def ask_for_state() -> None:
        while not stop.wait(PERIOD_S):
            refresh(state, recording)

    # The stream ends only with the server, which ends after the block: its thread must not keep the demo alive.
    threading.Thread(target=guarded, args=(follow_events,), name="events", daemon=True).start()
    asking = threading.Thread(target=guarded, args=(ask_for_state,), name="state")
    asking.start()
    try:
        yield
    finally:
        stop.set()
        asking.join()
        state.close()


def refresh(client: Client, recording: Recording) -> None:
    """Ask once for the jobs and for who held slots when; of jobs that were over before all is known."""
    known = {job_id: detail for job_id, detail in recording.details.items() if detail.job.ended}
    jobs = sorted(client.jobs().jobs, key=lambda job: job.submitted_at)
    details = [known[job.id] if job.id in known else client.job(job.id) for job in jobs]
    recording.set_state(details, client.usage().points)
    if names := {detail.job.spec.trial.search: None for detail in details if detail.job.spec.trial is not None}:
        recording.set_search(client.searches.get(list(names)[-1]))


def catch_up(client: Client, recording: Recording) -> None:
    """Read all events page by page, so that none is missing that the stream had not brought yet."""
    after = 0
    while True:
        page = client.events(after=after)
        for event in page.events:
            recording.add_event(event)
        if not page.events:
            return
        after = page.events[-1].seq
