"""A task's part in the generations of its job: what the server announced, what is connected, and which one it is in.

Theory of operation
-------------------
The server announces generations (`Form`), gives them up (`Abandon`) and dismisses tasks (`Dismiss`). The link's thread
delivers these messages; the training thread asks between steps what follows from them. Connecting takes seconds, so a
thread of its own does it for every announced generation, while training goes on. All three meet under one lock.

Two rules make all members of a generation act alike without another message:

- A pledge ("I am connected in generation g+1, or it leaves me out") travels with the gradients of a step. When all
  members of g have pledged the same number, all of them switch after that step, even if g+1 was abandoned meanwhile:
  whoever did not hear of that in time switches, and nobody must be left behind. Who enters an abandoned generation
  finds it lost at once and goes on by the second rule.
- Whoever stands in a generation that is over enters the newest announced one that it is a member of, once it is
  connected there.

`Announcements` shows an example. Knows nothing of models, gradients or files.
"""

import threading
from collections.abc import Callable, Hashable
from functools import partial
from time import monotonic
from typing import Final, assert_never

import torch

from pliant.core.job import JobId, TaskId
from pliant.core.link import (
    Abandon,
    Dismiss,
    Form,
    FromTask,
    Hello,
    Leaving,
    Lost,
    Note,
    Pulse,
    Ready,
    ShowStacks,
    Stacks,
    ToTask,
)
from pliant.train.errors import Departed, GenerationLost
from pliant.train.group.announcements import Announcements
from pliant.train.group.collectives import Group, GroupSpec, connect
from pliant.train.group.reach import PeerWatch, Waits
from pliant.train.stacks import main_line, stacks

_LOOK_S: Final = 0.1
"""How often a wait looks whether a signal's handler has ended it."""


class TaskMembership:
    """One task's view of its job's membership.

    Args:
        host: this task's own address, at which other tasks reach it.
        key: the job's, which its tasks prove to each other.
        send: queues a message to the server; never blocks.
        on_commit: called after every committed step with their number; must be quick.
    """

    def __init__(
        self,
        *,
        job_id: JobId,
        task_id: TaskId,
        pid: int,
        host: str,
        key: bytes,
        send: Callable[[FromTask], None],
        on_commit: Callable[[int], None] = lambda _step: None,
    ) -> None:
        self.task_id = task_id
        self.host = host
        self.key = key
        self.device: torch.device | None = None
        """Where the gradients live; set before the task says that it is ready."""
        self.prepare: Callable[[int, int], None] = lambda _size, _rank: None
        """Called by a thread that is about to connect, with the generation's size and this task's rank there; what a
        first step needs can be made ready, while the others train on. Set before the task says that it is ready."""
        self.send = send
        self._on_commit = on_commit
        self._job_id = job_id
        self._pid = pid
        self._announced = Announcements(task_id=task_id)
        self._changed = threading.Condition()
        self._current: Group | None = None
        self._is_lost = False
        """A collective of the current generation has failed here."""
        self._trained_in: int | None = None
        """The generation that this task trains in, or trained in last."""
        self._step: int | None = None
        self._ready: Ready | None = None
        self._notes_sent: set[str] = set()
        self._is_closed = False
        self._awaits_generation = False
        self._standing_in: Form | None = None
        """The announcement of the present generation."""
        self._watch = PeerWatch(host=host, waits=self._long_waits, send=send)

    # -- the link's thread ------------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Return the first message of a new connection: where this task stands."""
        with self._changed:
            return Hello(
                task_id=self.task_id,
                pid=self._pid,
                generation=self._trained_in,
                step=self._step,
                lost=self._stands_still(),
                failed=self._current.number if self._current is not None and self._is_lost else None,
                ready=self._ready is not None,
                host=self._ready.host if self._ready else "",
                port=self._ready.port if self._ready else 0,
            )

    def pulse(self) -> Pulse:
        """Return the message that says no more than that this task lives."""
        return Pulse(step=self._step)

    def _waits(self) -> bool:
        """Tell whether the training thread waits for others: in a collective, or for a generation."""
        return self._awaits_generation or (self._current is not None and self._current.waits)

    def _stands_still(self) -> bool:
        current = None if self._current is None else self._current.number
        return self._is_lost or current != self._trained_in or (current is None and bool(self._announced.forms))

    def deliver(self, message: ToTask) -> None:
        """Take a message of the server."""
        if isinstance(message, ShowStacks):  # without the lock: who holds it may be what is stuck
            self.send(Stacks(text=stacks(), at=main_line(), waits=self._waits()))
            return
        with self._changed:
            match message:
                case Form():
                    if self._announced.add(message) and self.task_id in message.members:
                        self._start_connecting(message)
                case Abandon():
                    self._announced.abandon(message.generation, monotonic())
                    if self._current is not None and self._current.number == message.generation:
                        self._current.abort()  # the training thread may be waiting in a collective of it
                case Dismiss():
                    self._announced.dismissed = message.reason
                case _:
                    assert_never(message)
            self._changed.notify_all()

    def _start_connecting(self, form: Form) -> None:
        if any(host not in ("", self.host) for host, _ in form.addresses):
            self._watch.begin()
        name = f"pliant-form-{form.generation}"
        threading.Thread(target=self._connect, args=(form,), name=name, daemon=True).start()

    # -- the connecting threads -------------------------------------------------------------------------------------

    def _connect(self, form: Form) -> None:
        number, rank, size = form.generation, form.members.index(self.task_id), len(form.members)
        self.prepare(size, rank)
        try:
            group = connect(
                GroupSpec(
                    number=number,
                    rank=rank,
                    size=size,
                    host=self.host,
                    key=self.key,
                    device=self.device,
                    encrypts=form.encrypts,
                ),
                address=(form.host, form.port),
                prefix=f"{self._job_id}/{number}",
                is_cancelled=partial(self._is_over, number),
            )
        except GenerationLost as error:
            with self._changed:
                is_unexpected = not self._is_over(number)
                self._announced.forms.pop(number, None)  # if it is announced again, it is tried again
            if is_unexpected:
                self.send(Lost(generation=number, step=self._step or 0, error=str(error)))
            return
        with self._changed:
            self._announced.connected[number] = group
            if self._is_over(number):
                self._announced.drop(number)  # too late: members that wait in it must see that this task does not come
            self._changed.notify_all()
            note = group.note if group.rank == 0 and group.note not in self._notes_sent else ""
            self._notes_sent.add(note)
        if note:
            self.send(Note(message=note))

    def _is_over(self, number: int) -> bool:
        """Tell whether connecting in a generation is useless. Called by connecting threads, without the lock."""
        return self._is_closed or self._announced.is_over(number)

    def _long_waits(self) -> Waits:
        """Return in which generations this task waits for others; called by the thread that watches these."""
        with self._changed:
            current, unconnected = self._current, self._announced.unconnected(monotonic())
            waits: dict[Hashable, Form] = {} if unconnected is None else {"connects": unconnected}
            if current is not None and current.waits and self._standing_in is not None:
                waits[current.number, current.num_waits] = self._standing_in
            return waits

    def close(self) -> None:
        """Drop every connection and stop connecting, as the end of this process would."""
        self._watch.close()
        with self._changed:
            self._is_closed = True
            for number in list(self._announced.connected):
                self._announced.drop(number)
            if self._current is not None:
                self._current.drop()

    # -- the training thread ----------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """The generation that this task trains in."""
        assert self._current is not None, "no generation was entered yet"
        return self._current

    @property
    def is_training(self) -> bool:
        """This task has entered a generation."""
        return self._current is not None

    def announce_ready(self, ready: Ready) -> None:
        """Tell the server that this task can join."""
        with self._changed:
            self._ready = ready
        self.send(ready)

    def ask_to_leave(self, reason: str) -> None:
        """Ask the server for a generation without this task."""
        self.send(Leaving(reason=reason))

    def give_up(self, reason: str) -> str | None:
        """Make `wait_for_generation` raise `Departed`, now or when it is called; return why, None if it has already.

        If the server has dismissed this task, that is why. Takes no lock and wakes nobody, so that a signal handler may
        call it wherever the program is.
        """
        return self._announced.give_up(reason)

    def record_commit(self, step: int) -> None:
        """Note that this task trains in the present generation and has committed `step` optimizer steps."""
        self._trained_in, self._step = self.group.number, step
        self._on_commit(step)

    def is_lost(self) -> bool:
        """Tell whether the present generation was given up, or this task was dismissed."""
        announced = self._announced
        return self._is_lost or announced.dismissed is not None or self.group.number in announced.abandoned

    def pledge(self) -> int | None:
        """Return the number of the announced generation that this task is ready to switch to; None if there is none."""
        if not self._announced.forms:  # asked at every step, so without the lock in the usual case
            return None
        with self._changed:
            return self._announced.pledge()

    def upcoming(self) -> tuple[int, int] | None:
        """Return size and own rank in the announced generation that is connected here; None if there is none."""
        if not self._announced.forms:
            return None
        with self._changed:
            form = self._announced.newest_connected()
            return None if form is None else (len(form.members), form.members.index(self.task_id))

    def switch(self, number: int) -> Form:
        """Leave the present generation for one that all its members pledged; return its announcement.

        If this task is a member of it, `group` is the new generation from now on (perhaps a lost one already).
        """
        with self._changed:
            form = self._announced.forms[number]
            if self.task_id in form.members:
                dropped = Group(number=number, rank=0, size=len(form.members), backend=None)
                self._enter(self._announced.connected.pop(number, dropped))  # it may have been abandoned since
            return form

    def lose(self, error: str) -> None:
        """Give the present generation up because a collective of it failed here."""
        with self._changed:
            assert self._current is not None
            self._is_lost = True
            self._current.abort()  # nothing may be written any more, and members that wait for this task must notice
            self._current.drop()
        self.send(Lost(generation=self.group.number, step=self._step or 0, error=error, trained=self._trained_in))

    def wait_for_generation(self) -> Group:
        """Enter the newest announced generation that this task is a member of, once it is connected.

        Waits as long as it takes: without the server nobody can say who trains.

        Raises:
            Departed: the server dismissed this task, or `give_up` was called.
        """
        announced = self._announced
        with self._changed:
            self._awaits_generation = True
            while not self._changed.wait_for(
                lambda: announced.dismissed is not None or announced.newest_connected() is not None, _LOOK_S
            ):
                pass  # a signal handler must not notify, so what it changed is seen at the next look
            self._awaits_generation = False
            form = announced.newest_connected()
            if announced.dismissed is not None or form is None:
                announced.departs = True
                raise Departed(announced.dismissed or "")
            self._enter(announced.connected.pop(form.generation))
            return self.group

    def _enter(self, group: Group) -> None:
        if self._current is not None:
            self._current.drop()
        self._current = group
        self._is_lost = False
        self._standing_in = self._announced.forms.get(group.number)
        self._announced.enter(group.number)

    def check_dismissed(self) -> None:
        """Raise `Departed` if the server dismissed this task."""
        if self._announced.dismissed is not None:
            raise Departed(self._announced.dismissed)
