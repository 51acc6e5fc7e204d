"""The messages between a task and the server over the control link; none of them is on the per-step path.

All messages are idempotent: each may arrive twice, and a message about a generation that is over is ignored. A task
keeps a message until the server has stored it, and sends it again on the next connection if it must. In the docstrings
"I" is the sender. `pliant.api.link` turns messages into JSON; `kind` and the names of the fields are the wire format,
which tasks of an older server still speak.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import Ge, Le, MaxLen

from pliant.core.job import Claim, Progress, TaskId
from pliant.core.job_params import ParamValue
from pliant.core.tensor_histogram import MAX_STEP, TensorHistogram

MAX_NUMBER: Final = MAX_STEP
"""Of a step, an epoch, a message: what a database keeps."""
MAX_SERIES_NAME: Final = 500
MAX_PEERS: Final = 64
"""So many tasks are named in one message, each on another machine."""
Number = Annotated[int, Ge(0), Le(MAX_NUMBER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """First message of every connection: who I am and where I stand."""

    task_id: TaskId
    pid: Number
    generation: Number | None = None
    """The one I train in, or trained in last; None if I never joined one."""
    step: Number | None = None
    """Optimizer steps that my state has committed; None if I hold no state yet."""
    lost: bool = False
    """I do not train in `generation` any more, or never did: I wait for a generation that I know of to connect."""
    failed: int | None = None
    """The generation that I entered last, if it failed for me. I sent `Lost`, but it may not have arrived."""
    ready: bool = False
    """My model is built and I can join; I sent `Ready` before."""
    host: str = ""
    port: int = 0
    """As in `Ready`, if `ready`."""
    kind: Literal["hello"] = "hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """My model is built; I can join a generation at any moment."""

    host: str
    port: int
    """Where my rendezvous server listens, from now on."""
    virtual_workers: int
    num_epochs: int = 0
    kind: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """I have entered this generation and hold its state."""

    generation: Number
    step: Number
    """Optimizer steps committed at the switch."""
    size: Number
    pause_s: float
    """Seconds that training stood still in this task."""
    redone_steps: Annotated[int, Ge(0), Le(1)]
    """1 if a step that was begun before a loss has to be computed again, else 0."""
    leader: bool
    """I am rank 0."""
    kind: Literal["switched"] = "switched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """This generation failed for me: it did not connect, or a collective of it failed."""

    generation: Number
    step: Number
    error: str
    trained: int | None = None
    """The generation that I trained in last, if I stand still now; None if I train on, or never trained."""
    kind: Literal["broken"] = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """I was asked to end (SIGTERM); please form a generation without me."""

    reason: str
    kind: Literal["leaving"] = "leaving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """I left at a step boundary and am about to exit; I had committed `step` optimizer steps."""

    generation: Number
    step: Number
    saved: bool
    """I wrote a checkpoint of that state. Only the leader does, when all tasks leave."""
    kind: Literal["left"] = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of one series; `step` in optimizer steps committed, `at` in seconds since the epoch."""

    name: str
    step: int
    epoch: int
    at: float
    value: float

    @property
    def fault(self) -> str:
        """Why it cannot be kept, in words that follow its series; empty if it can.

        A task may say anything, and a database does not take every number or text.
        """
        if not 0 < len(self.name) <= MAX_SERIES_NAME:
            return f"its name has {len(self.name)} characters; give it 1 to {MAX_SERIES_NAME}"
        if "\0" in self.name:
            return "its name has a character NUL; give it another one"
        if not (0 <= self.step <= MAX_NUMBER and 0 <= self.epoch <= MAX_NUMBER and math.isfinite(self.at)):
            return f"its step, its epoch or its time makes no sense; steps and epochs are from 0 to {MAX_NUMBER}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """From the leader, a few times a second at most: how far the training is, and new points of its series."""

    generation: Number
    progress: Progress
    points: tuple[Point, ...] = ()
    kind: Literal["report"] = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms:
    """From the leader, about once a second at most: how weights, gradients or other values lie at a step."""

    histograms: tuple[TensorHistogram, ...]
    kind: Literal["histograms"] = "histograms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """From the leader: the hyperparameters that the script has reported so far."""

    values: Mapping[str, ParamValue]
    kind: Literal["params"] = "params"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished:
    """From the leader: every sample of an epoch was used."""

    epoch: Number
    """Counted from 0."""
    step: Number
    samples: int
    """Samples that the committed steps of this epoch used."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    kind: Literal["epoch_finished"] = "epoch_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """From the leader: a checkpoint or the final model is on disk, whole."""

    what: Literal["checkpoint", "model"]
    step: Number
    epoch: Number
    path: str
    """Relative to the job's result folder."""
    num_bytes: int
    seconds: float
    kind: Literal["saved"] = "saved"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveFailed:
    """From the leader: a checkpoint could not be written; the one before it is untouched and training goes on."""

    step: Number
    error: str
    kind: Literal["save_failed"] = "save_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """From the leader, at the first step of a training and at every change: what the results are worth.

    Within a job a claim only gets weaker: exact, then statistical, then fast; a stronger one is ignored.
    """

    claim: Claim
    fingerprint: str
    """What the results depend on besides script and data: versions, device, threads, flags."""
    reason: str = ""
    """Why the claim is weaker than what was asked for."""
    step: Number = 0
    """Optimizer steps that were committed when it became so."""
    kind: Literal["claimed"] = "claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """All epochs are trained and the model is saved; sent by every member, first of all by the leader."""

    step: Number
    digest: str = ""
    """SHA-256 of the final state, in hex; empty if it was not computed."""
    progress: Progress | None = None
    """How far the training came, as this member knows it: the leader may have died before it could report it."""
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The user's program raised; the job cannot go on."""

    error: str
    """The last line: type and message."""
    traceback: str
    """The user's frames first."""
    step: Number | None = None
    """Optimizer steps that the task had committed; None if it never held a state."""
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something the job's owner should know; becomes an event of kind `warning`."""

    message: str
    kind: Literal["note"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Where my threads are, because the server asked; it takes one answer for each time that it asked."""

    text: str
    """The stacks of all threads, as Python shows them, the main one first."""
    at: str
    """The main thread's innermost line in the script's folder, such as `train.py:12 in load`; else its innermost."""
    waits: bool
    """My main thread waits for other tasks."""
    kind: Literal["stacks"] = "stacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """I wait for these tasks and cannot connect with their machines: one task of each. Empty: I can again.

    Said again every few seconds as long as it is so. The server takes it for true only of tasks that live on other
    machines, if it hears these machines and mine, and if it is said again some seconds later.
    """

    peers: Annotated[tuple[TaskId, ...], MaxLen(MAX_PEERS)]
    kind: Literal["unreachable"] = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """I live: sent when nothing else was sent for a quarter of the lease. The server stores nothing of it."""

    step: Number | None = None
    """Optimizer steps that my state has committed; None if I hold no state yet."""
    kind: Literal["pulse"] = "pulse"


FromTask = (
    Hello
    | Ready
    | Switched
    | Lost
    | Leaving
    | Left
    | Report
    | Histograms
    | Params
    | EpochFinished
    | Saved
    | SaveFailed
    | Claimed
    | Finished
    | Failed
    | Note
    | Stacks
    | Unreachable
    | Pulse
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Connect generation `generation` in the background; sent to its members and to those that it leaves out.

    A task that is not among `members` leaves when all switch. With no members at all everybody leaves and the leader of
    the present generation saves a checkpoint first.
    """

    generation: Number
    members: tuple[TaskId, ...]
    """In rank order, those who hold state first."""
    host: str
    port: int
    """The rendezvous server of the first member."""
    addresses: tuple[tuple[str, int], ...] = ()
    """Those of all members, in rank order, with which a task sees whether it reaches their machines."""
    cause: str = ""
    is_end: bool = False
    """With no members: the job ends, nobody goes on from that checkpoint."""
    encrypts: bool = False
    """State that members on different hosts send each other is encrypted."""
    kind: Literal["form"] = "form"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """This generation is over: stop waiting in it, drop what it computed, enter the next one that is announced."""

    generation: Number
    reason: str
    kind: Literal["abandon"] = "abandon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismiss:
    """Exit now: the job is over, or the server does not know you."""

    reason: str
    kind: Literal["dismiss"] = "dismiss"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStacks:
    """Tell where your threads are."""

    kind: Literal["show_stacks"] = "show_stacks"


ToTask = Form | Abandon | Dismiss | ShowStacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Everything that you sent up to this number is stored: forget it. The link itself sends and reads this message."""

    number: int
    kind: Literal["stored"] = "stored"
