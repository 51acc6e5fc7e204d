"""How a state gets from the members of a generation that have it to those that have not.

Either all wait for it, or only the newcomers do: then the others compute the next step while it is on its way
(`agree` decides). Example: A and B train with 4 of 8 virtual workers each when C and D come, and the state is large.

    A, B    send it to C and D, and compute 4 and 4 parts of the next step meanwhile
    C, D    receive it, and come to that step with nothing to compute
    all     sum the gradients, and step: from now on each has 2 parts

Knows no server; the engine says when a step begins and ends.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.collectives import Group
from pliant.train.state import pytree
from pliant.train.state.handout import Handout
from pliant.train.state.shared import SharedState
from pliant.train.state.steady import SteadyParameters
from pliant.train.step_times import StepTimes
from pliant.train.sum.memory import MAX_PREPARED_BYTES


class StateCopies:
    """Gives the state of this task to other members of its generation.

    Args:
        parameters: those that are trained.
        clock: monotonic, seconds.
    """

    def __init__(
        self, state: SharedState, parameters: Sequence[torch.nn.Parameter], clock: Callable[[], float]
    ) -> None:
        self._state = state
        self._parameters = parameters
        self._steady = SteadyParameters(parameters)
        self._are_here = all(parameter.device.type == "cpu" for parameter in parameters)
        self._times = StepTimes(clock=clock)
        self._handout: Handout | None = None
        self._spare: list[torch.Tensor] = []
        self.shares: tuple[int, ...] = ()
        """Virtual workers of every member in the first step of a generation, if some rest in it to copy the state."""

    # -- what others have to know -----------------------------------------------------------------------------------

    @property
    def may_go_on(self) -> bool:
        """The state can be read while a step is computed: it is in main memory, and no step was seen to change it."""
        return self._are_here and not self._steady.have_changed

    @property
    def state_bytes(self) -> int:
        return self._state.num_bytes

    @property
    def step_us(self) -> int:
        """What a step usually takes, microseconds; 0 if none was watched here."""
        return self._times.step_us if self._steady.num_watched else 0

    # -- copies -----------------------------------------------------------------------------------------------------

    def give(self, group: Group, receivers: Sequence[int], *, step: int, epoch: int, meanwhile: bool) -> None:
        """Send the state to these members: now, or while the next step is computed.

        Raises:
            GenerationLost: a receiver is gone.
            TrainingError: the state holds something that cannot travel.
        """
        if meanwhile:
            self._handout = Handout(group, self._state, step=step, epoch=epoch, receivers=receivers)
            return
        tree = self._state.capture(step=step, epoch=epoch)
        for receiver in receivers:
            pytree.send(group, tree, receiver)

    def prepare(self) -> None:
        """Touch memory for a model that will be received: at its first touch it takes longer than the copy. Any thread.

        What the optimizers of others keep is not known here.
        """
        is_little = sum(one.nbytes for one in self._parameters) <= MAX_PREPARED_BYTES
        if not self._spare and self._are_here and is_little:
            with suppress(RuntimeError, MemoryError):  # whoever receives will meet it, and say so
                self._spare = [torch.empty(one.shape, dtype=one.dtype).zero_() for one in self._parameters]

    def receive(self, group: Group, donor: int) -> dict[str, Any]:
        """Return the state of another member."""
        spare, self._spare = self._spare, []
        tree: dict[str, Any] = pytree.receive(group, donor, spare)
        return tree

    # -- steps ------------------------------------------------------------------------------------------------------

    def begin_step(self, *, num_parts: int) -> None:
        """A step begins of which this task computes so many parts."""
        self._spare = []  # a generation that was given up may have left it to one that has no use for it
        self._steady.begin(computes=num_parts > 0)

    def end_computing(self) -> None:
        """The gradients of this task's parts are computed."""
        self._steady.end()

    def settle(self) -> None:
        """Wait until the state is with whom it was given to: it is about to change.

        Raises:
            GenerationLost: a receiver is gone.
        """
        handout, self._handout = self._handout, None
        if handout is not None:
            handout.finish()

    def end_step(self) -> None:
        """The step is committed."""
        self._times.commit()
        self.shares = ()

    def interrupt(self) -> None:
        """The members change; of a generation that was lost, what was still to be sent is dropped."""
        self._times.interrupt()
        self.shares = ()
        handout, self._handout = self._handout, None
        if handout is not None:
            handout.drop()

    def why_lost(self, error: GenerationLost) -> GenerationLost:
        """Return why a generation was lost: what ended a copy, if that was the cause."""
        return error if self._handout is None or self._handout.error is None else self._handout.error
