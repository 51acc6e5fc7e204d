"""A task's part in the generations of its job: what was announced, what is connected, where I stand.

Two threads meet here: the link's thread delivers messages, the training thread asks between steps. Forming happens in
threads of its own. Knows nothing of models, gradients or files.

Rules that make all tasks agree without talking:
- a pledge (generation g+1 is connected here, or leaves me out) travels with the gradients of a step; when all members
  of g pledged the same, all switch after that step, also if g+1 was abandoned in the meantime;
- whoever stands in a generation that is over enters the newest announced one that it is a member of.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

import torch

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Broken, Dismiss, Form, FromTask, Hello, Leaving, Note, Pulse, Ready, ToTask
from pliant.train.errors import Departed, GenerationLost
from pliant.train.group.collectives import Group, Seat, connect

_LOOK_S: Final = 0.1
"""How often who waits looks whether a signal's handler had it give up."""


@dataclass(slots=True)
class _Known:
    """What the server has told."""

    forms: dict[int, Form] = field(default_factory=dict)
    connected: dict[int, Group] = field(default_factory=dict)
    abandoned: set[int] = field(default_factory=set)
    dismissed: str | None = None


class Session:
    """One task's view of its job's membership.

    Args:
        host: my own address, at which other tasks reach me.
        send: queues a message to the server; never blocks.
        committed: called after every committed step with their number; must be quick.
    """

    def __init__(
        self,
        *,
        job_id: JobId,
        task_id: TaskId,
        pid: int,
        host: str,
        send: Callable[[FromTask], None],
        committed: Callable[[int], None] = lambda _step: None,
    ) -> None:
        self.task_id = task_id
        self.host = host
        self.device: torch.device | None = None
        """Where the gradients live; set before the task says that it is ready."""
        self.send = send
        self._committed = committed
        self._job_id = job_id
        self._pid = pid
        self._known = _Known()
        self._changed = threading.Condition()
        self._current: Group | None = None
        self._closed = False
        self._noted: set[str] = set()
        self._lost = False
        self._trained: int | None = None
        self._step: int | None = None
        self._ready: Ready | None = None

    # -- the link's thread ------------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Say where I stand, for a new connection."""
        with self._changed:
            return Hello(
                task_id=self.task_id,
                pid=self._pid,
                generation=self._trained,
                step=self._step,
                lost=self._stands_still(),
                failed=self._current.number if self._current is not None and self._lost else None,
                ready=self._ready is not None,
                host=self._ready.host if self._ready else "",
                port=self._ready.port if self._ready else 0,
            )

    def pulse(self) -> Pulse:
        """Say that I live."""
        return Pulse(step=self._step)

    def _stands_still(self) -> bool:
        here = None if self._current is None else self._current.number
        return self._lost or here != self._trained or (here is None and bool(self._known.forms))

    def deliver(self, message: ToTask) -> None:
        """Take a message of the server."""
        with self._changed:
            match message:
                case Form():
                    self._announce(message)
                case Abandon():
                    self._known.abandoned.add(message.generation)
                    self._drop(message.generation)
                    if self._current is not None and self._current.number == message.generation:
                        self._current.abort()  # my training thread may stand in it
                case Dismiss():
                    self._known.dismissed = message.reason
                case _:
                    assert_never(message)
            self._changed.notify_all()

    def _announce(self, form: Form) -> None:
        number = form.generation
        here = 0 if self._current is None else self._current.number
        if number <= here or number in self._known.forms or number in self._known.abandoned:
            return
        self._known.forms[number] = form
        if self.task_id in form.members:
            threading.Thread(target=self._connect, args=(form,), name=f"pliant-form-{number}", daemon=True).start()

    def _connect(self, form: Form) -> None:
        number = form.generation
        try:
            group = connect(
                Seat(
                    number=number,
                    rank=form.members.index(self.task_id),
                    size=len(form.members),
                    host=self.host,
                    device=self.device,
                ),
                address=(form.host, form.port),
                prefix=f"{self._job_id}/{number}",
                given_up=partial(self._is_over, number),
            )
        except GenerationLost as error:
            with self._changed:
                unexpected = not self._is_over(number)
                self._known.forms.pop(number, None)  # announced again, it is tried again
            if unexpected:
                self.send(Broken(generation=number, step=self._step or 0, error=str(error)))
            return
        with self._changed:
            self._known.connected[number] = group
            if self._is_over(number):
                self._drop(number)  # too late: whoever waits in it must see that I do not come
            self._changed.notify_all()
            news = group.note if group.rank == 0 and group.note not in self._noted else ""
            self._noted.add(news)
        if news:
            self.send(Note(message=news))

    def _is_over(self, number: int) -> bool:
        """Tell whether nobody wants an announced generation any more. Forming threads ask, without the lock."""
        current = self._current
        return (
            self._closed
            or self._known.dismissed is not None
            or number in self._known.abandoned
            or (current is not None and number <= current.number)
        )

    def _drop(self, number: int) -> None:
        group = self._known.connected.pop(number, None)
        if group is not None:
            group.drop()

    def close(self) -> None:
        """Let go of every connection and stop connecting, as the end of this process would."""
        with self._changed:
            self._closed = True
            for number in list(self._known.connected):
                self._drop(number)
            if self._current is not None:
                self._current.drop()

    # -- the training thread ----------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """The generation that I train in."""
        assert self._current is not None, "no generation was entered yet"
        return self._current

    @property
    def trains(self) -> bool:
        """I have entered a generation."""
        return self._current is not None

    def ready(self, ready: Ready) -> None:
        """Tell the server that I can join."""
        with self._changed:
            self._ready = ready
        self.send(ready)

    def ask_to_leave(self, reason: str) -> None:
        """Ask the server for a generation without me."""
        self.send(Leaving(reason=reason))

    def give_up(self, reason: str) -> bool:
        """Let `wait_for_generation` raise `Departed`, now or when it is called; tell whether that is news.

        Takes no lock and wakes nobody, so that a signal handler may call it wherever the program is.
        """
        is_news = self._known.dismissed is None
        if is_news:
            self._known.dismissed = reason
        return is_news

    def hold(self, step: int) -> None:
        """Remember that I train in the present generation and that my state has committed `step` optimizer steps."""
        self._trained, self._step = self.group.number, step
        self._committed(step)

    def is_lost(self) -> bool:
        """Tell whether the present generation was given up, or I was dismissed."""
        known = self._known
        return self._lost or known.dismissed is not None or self.group.number in known.abandoned

    def pledge(self) -> int | None:
        """Return the number of the announced generation that I am ready to switch to, None if there is none."""
        if not self._known.forms:
            return None
        with self._changed:
            form = self._newest()
            if form is None or (self.task_id in form.members and form.generation not in self._known.connected):
                return None
            return form.generation

    def coming(self) -> tuple[int, int] | None:
        """Return size and my rank in the announced generation that I am connected in; None if there is none."""
        if not self._known.forms:
            return None
        with self._changed:
            form = self._newest()
            if form is None or form.generation not in self._known.connected:
                return None
            return len(form.members), form.members.index(self.task_id)

    def _newest(self) -> Form | None:
        here = 0 if self._current is None else self._current.number
        live = [n for n in self._known.forms if n > here and n not in self._known.abandoned]
        return self._known.forms[max(live)] if live else None

    def switch(self, number: int) -> Form:
        """Leave the present generation for one that all its members pledged; return its announcement.

        If I am a member of it, `group` is the new generation from now on (perhaps a lost one already).
        """
        with self._changed:
            form = self._known.forms[number]
            if self.task_id in form.members:
                missing = Group(number=number, rank=0, size=len(form.members), backend=None)
                self._enter(self._known.connected.pop(number, missing))
            return form

    def lose(self, error: str) -> None:
        """Give the present generation up because a collective of it failed here."""
        with self._changed:
            assert self._current is not None
            self._lost = True
            self._current.abort()  # nothing may be written any more, and those who wait for me must notice
            self._current.drop()
        self.send(Broken(generation=self.group.number, step=self._step or 0, error=error, trained=self._trained))

    def wait_for_generation(self) -> Group:
        """Enter the newest announced generation that I am a member of, once it is connected.

        Waits as long as it takes: without the server nobody can say who trains.

        Raises:
            Departed: the server dismissed me, or `give_up` was called.
        """

        def found() -> bool:
            form = self._newest()
            return self._known.dismissed is not None or (form is not None and form.generation in self._known.connected)

        with self._changed:
            while not self._changed.wait_for(found, _LOOK_S):
                pass  # a signal wakes nobody, and its handler may not
            form = self._newest()
            if self._known.dismissed is not None or form is None:
                raise Departed(self._known.dismissed or "")
            self._enter(self._known.connected.pop(form.generation))
            return self.group

    def _enter(self, group: Group) -> None:
        if self._current is not None:
            self._current.drop()
        self._current = group
        self._lost = False
        for number in [n for n in self._known.forms if n <= group.number]:
            self._drop(number)
            del self._known.forms[number]
        self._known.abandoned = {n for n in self._known.abandoned if n >= group.number}

    def check_dismissed(self) -> None:
        """Raise `Departed` if the server dismissed me."""
        if self._known.dismissed is not None:
            raise Departed(self._known.dismissed)
