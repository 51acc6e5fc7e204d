"""Sends a state to newcomers while this task computes its next step.

Trained parameters and what optimizers keep do not change before that step is summed, so they are read where they are.
Everything else is copied at once. `finish` comes before the first change; a newcomer that takes part in the sum has
received all of it by then.
"""

import threading
from collections.abc import Sequence

from pliant.train.errors import GenerationLost
from pliant.train.group.collectives import Group
from pliant.train.state import pytree
from pliant.train.state.shared import SharedState


class Handout:
    """One state on its way to newcomers, one after the other, by a thread of its own.

    Args:
        group: of which they are members.
        receivers: by rank.

    Raises:
        TrainingError: the state holds something that cannot travel.
        GenerationLost: the group was dropped.
    """

    def __init__(self, group: Group, state: SharedState, *, step: int, epoch: int, receivers: Sequence[int]) -> None:
        if group.channels is None:
            raise GenerationLost("the generation was dropped")
        self._group, self._channels = group, group.channels
        skeleton, tensors = pytree.flatten(state.capture(step=step, epoch=epoch))
        steady = state.steady_memory()
        self._flat = (skeleton, [t if pytree.place(t) in steady else t.clone() for t in tensors])
        self._receivers = receivers
        self.error: GenerationLost | None = None
        """Why the state did not get to somebody."""
        self._thread = threading.Thread(target=self._send, name=f"pliant-handout-{group.number}", daemon=True)
        self._thread.start()

    def _send(self) -> None:
        try:
            for receiver in self._receivers:
                pytree.send_flat(self._channels, *self._flat, receiver)
        except GenerationLost as error:
            self._lose(error)
        except (RuntimeError, MemoryError) as error:
            self._lose(GenerationLost(f"the state could not be sent: {error}"))

    def _lose(self, error: GenerationLost) -> None:
        self.error = error
        self._group.abort()  # the training thread may wait for who will never come

    def finish(self) -> None:
        """Return when all have the state.

        Raises:
            GenerationLost: they will not.
        """
        self._thread.join()
        if self.error is not None:
            raise self.error

    def drop(self) -> None:
        """Wait for the thread of a group that was aborted."""
        self._thread.join()
