"""Lets contenders take turns on one machine, A B C, C B A, …: each has its own worker processes, one is at work."""

import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.fixed.worker import Device, Seat, work
from bench.peers.processes import COMPUTING, clean_up_on_sigterm

START_S = 120.0
BLOCK_S = 300.0
NUM_WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to train with a fixed number of workers."""

    name: str
    how: Any
    num_parts: int | None = None
    """V of Pliant, 4 if none is given; DDP accumulates as many parts, or computes its whole share at once."""
    is_walled: bool = False
    """Its workers enter the walls that the tasks of a server are within."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """The medians of the blocks of one contender, seconds a step."""

    blocks: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.blocks)


@dataclass(slots=True)
class Team:
    """The workers of one contender."""

    contender: Contender
    device: Device = "cpu"
    pipes: list[Connection] = field(default_factory=list)
    processes: list[BaseProcess] = field(default_factory=list)

    def start(self, training: str, size: int, folder: Path) -> None:
        """Start them, let them meet, and wait until all are at the gate."""
        context = multiprocessing.get_context("spawn")
        how, parts, is_walled = self.contender.how, self.contender.num_parts, self.contender.is_walled
        store = str(folder / f"{self.contender.name}.store")
        for rank in range(size):
            mine, theirs = context.Pipe()
            seat = Seat(
                how=how, training=training, rank=rank, size=size, num_parts=parts, device=self.device, store=store,
                is_walled=is_walled,
            )  # fmt: skip
            process = context.Process(target=work, args=(seat, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        if how in ("fast", "exact"):
            addresses = [_receive(pipe, START_S, self.contender.name) for pipe in self.pipes]
            for pipe in self.pipes:
                pipe.send(addresses[0])

    def block(self, num_steps: int) -> float:
        """Do that many steps after one that does not count; return the first worker's median, seconds."""
        for pipe in self.pipes:
            pipe.send(num_steps + 1)
        times = [_receive(pipe, BLOCK_S, self.contender.name) for pipe in self.pipes]
        median: float = statistics.median(times[0][1:])
        return median

    def end(self) -> None:
        """End the workers."""
        for pipe in self.pipes:
            with suppress(OSError):
                pipe.send(0)
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self.pipes:
            pipe.close()


def _receive(pipe: Connection, limit_s: float, who: str) -> Any:
    if not pipe.poll(limit_s):
        raise TimeoutError(f"a worker of {who} said nothing for {limit_s:.0f} s")
    return pipe.recv()


def contest(
    training: str,
    size: int,
    contenders: Sequence[Contender],
    *,
    num_blocks: int,
    block_s: float,
    device: Device = "cpu",
) -> dict[str, Paces]:
    """Return the paces of all contenders, by name.

    A block has as many steps as fit into `block_s` at the pace of the first contender, at least three.
    """
    clean_up_on_sigterm()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plb-")))
        for name, value in COMPUTING.items():  # before a worker imports torch
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = value
        teams = []
        for contender in contenders:
            team = Team(contender, device)
            stack.callback(team.end)
            team.start(training, size, folder)
            teams.append(team)
        warm = [team.block(NUM_WARM_UP) for team in teams]
        num_steps = max(3, round(block_s / warm[0]))
        blocks: dict[str, list[float]] = {team.contender.name: [] for team in teams}
        for turn in range(num_blocks):
            for team in teams if turn % 2 == 0 else reversed(teams):  # nobody is always after the same one
                blocks[team.contender.name].append(team.block(num_steps))
    return {name: Paces(blocks=tuple(times)) for name, times in blocks.items()}


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
