"""The command `top`: asks the server once a second and draws what it answers."""

import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.live import Live
from rich.text import Text

from pliant.cli.jobs.events import past_events
from pliant.cli.jobs.frame import View, draw
from pliant.cli.options import JsonOption
from pliant.cli.screen import console, print_json, print_json_line, show
from pliant.cli.session import all_endpoints, all_jobs, open_client, open_searches
from pliant.client import Client
from pliant.client.http.patience import Patience
from pliant.core.errors import Unavailable
from pliant.core.event import Event, EventKind

_NUM_EVENTS: Final = 100
_SHOWN: Final = frozenset(
    {
        EventKind.JOB_SUBMITTED,
        EventKind.JOB_CHANGED,
        EventKind.JOB_STATE,
        EventKind.DECISION,
        EventKind.TASK_LOST,
        EventKind.CLAIM_WEAKENED,
        EventKind.QUEUE_CHANGED,
        EventKind.MACHINE_CHANGED,
        EventKind.WARNING,
    }
)
_ONCE_WIDTH: Final = 100
_ONCE_HEIGHT: Final = 40


def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and return.")] = False,
    every_s: Annotated[float, typer.Option("--every", metavar="S", min=0.1, help="Seconds between two frames.")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Watch slots, endpoints, searches and jobs live; q ends it."""
    with open_client(context) as client:
        watcher = Watcher(client)
        screen = console()
        if once or not screen.is_terminal:
            view = watcher.look()
            if as_json:
                print_json(view)
            elif screen.is_terminal:
                show(draw(view, width=screen.width, height=screen.height))
            else:
                show(draw(view, width=_ONCE_WIDTH, height=_ONCE_HEIGHT))
        elif as_json:
            while True:
                print_json_line(watcher.look())
                time.sleep(every_s)
        else:
            _live(watcher, every_s)


class Watcher:
    """Looks at the server; asks only for the events that it has not seen."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last = 0
        self._events: deque[Event] = deque(maxlen=_NUM_EVENTS)

    def look(self) -> View:
        """Return what there is now."""
        for event in past_events(self._client, after=self._last):
            self._last = event.seq
            if event.kind in _SHOWN:
                self._events.append(event)
        return View(
            cluster=self._client.cluster(),
            jobs=all_jobs(self._client, ended=False),
            endpoints=all_endpoints(self._client),
            searches=open_searches(self._client),
            events=tuple(self._events),
            url=self._client.url,
        )


def _live(watcher: Watcher, every_s: float) -> None:
    """Draw until q is pressed; a server that is away for a while is waited for."""
    screen = console()
    view = watcher.look()
    with _keys() as pressed, Live(console=screen, screen=True, auto_refresh=False) as live:
        patience = Patience(sleep=lambda _s: None)
        while True:
            try:
                view = watcher.look()
                patience.reset()
                frame = draw(view, width=screen.width, height=screen.height)
            except Unavailable as error:
                patience.wait_after(error)
                frame = Text(f"{error}\ntrying again …", style="red")
            live.update(frame, refresh=True)
            if pressed(every_s) in ("q", "Q"):
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits so many seconds for a key and returns it, or nothing."""
    if not sys.stdin.isatty():

        def wait(seconds: float) -> str:
            time.sleep(seconds)
            return ""

        yield wait
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return sys.stdin.read(1) if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield read
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
