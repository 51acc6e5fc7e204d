"""A fixed generation of real processes, without a server: every one runs the same function and returns a value."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from tests.forks import FORKS

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Form, FromTask, Lost, Ready
from pliant.train.context import TRAIN_CONTEXT, standalone_context
from pliant.train.group.membership import TaskMembership

_PATIENCE_S = 120.0


def run_in(size: int, function: Callable[..., Any], **arguments: Any) -> list[Any]:
    """Return what `function(**arguments)` returns in each of `size` processes that train together, rank by rank.

    It may make several `Run`s, one after the other; each trains in a generation of its own.

    Raises:
        AssertionError: one of them failed, or none said anything for a long time.
    """
    pipes = [FORKS.Pipe() for _ in range(size)]
    members = [
        FORKS.Process(target=_live, args=(rank, pipe[1], function, arguments), daemon=True)
        for rank, pipe in enumerate(pipes)
    ]
    try:
        for member in members:
            member.start()
        return _coordinate([ours for ours, _ in pipes])
    finally:
        for member in members:
            member.kill()
            member.join()


def _coordinate(pipes: Sequence[Connection]) -> list[Any]:
    """Form a generation whenever all are ready, and again if it did not connect, as the server does."""
    done: dict[int, Any] = {}
    ready: dict[int, tuple[str, int]] = {}
    address, number = ("", 0), 0
    deadline = time.monotonic() + _PATIENCE_S
    while len(done) < len(pipes):
        heard = wait(pipes, timeout=max(0.0, deadline - time.monotonic()))
        assert heard, f"all were silent for {_PATIENCE_S} s; {len(ready)} are ready, {len(done)} done"
        deadline = time.monotonic() + _PATIENCE_S
        for rank, pipe in enumerate(pipes):
            if pipe not in heard:
                continue
            what, value = pipe.recv()
            assert what != "failed", value
            if what == "done":
                done[rank] = value
            elif what == "ready":
                ready[rank] = value
            broken = what == "broken" and value == number
            if broken or len(ready) == len(pipes):
                address = address if broken else ready[0]
                ready.clear()
                _form(pipes, number + 1, address, instead_of=number if broken else None)
                number += 1
    return [done[rank] for rank in range(len(pipes))]


def _form(pipes: Sequence[Connection], number: int, address: tuple[str, int], *, instead_of: int | None) -> None:
    names = tuple(TaskId(f"crew.{rank}") for rank in range(len(pipes)))
    for pipe in pipes:
        if instead_of is not None:
            pipe.send(Abandon(generation=instead_of, reason="it did not connect"))
        pipe.send(Form(generation=number, members=names, host=address[0], port=address[1]))


def _live(rank: int, pipe: Connection, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    one_at_a_time = threading.Lock()

    def tell(what: str, value: Any) -> None:
        with one_at_a_time:
            pipe.send((what, value))

    def send(message: FromTask) -> None:
        if isinstance(message, Ready):
            tell("ready", (message.host, message.port))
        elif isinstance(message, Lost):
            tell("broken", message.generation)

    def listen() -> None:
        while True:
            membership.deliver(pipe.recv())

    me = TaskId(f"crew.{rank}")
    membership = TaskMembership(
        job_id=JobId("crew"), task_id=me, pid=os.getpid(), host="127.0.0.1", key=b"crew", send=send
    )
    threading.Thread(target=listen, daemon=True).start()
    context = standalone_context()
    context.membership, context.standalone = membership, False
    context.virtual_workers = 8  # alone it would be 1, and many are to share it
    TRAIN_CONTEXT.set(context)
    try:
        tell("done", function(**arguments))
    except BaseException as error:  # noqa: BLE001 (told to the test, which fails)
        tell("failed", f"rank {rank}: {error!r}")
    threading.Event().wait()  # stays, as its connections do, until the test ends it
