"""What can end a wait inside a task.

GenerationLost     the generation I stand in will never be whole; recover
Departed           leave the process quietly (a SystemExit, so that user code does not catch it by accident)
TrainingError      the script or its data cannot be trained like this; the message says what to do (a UserError)
  DamagedCheckpoint  a file of a checkpoint is torn, changed, or something else
"""

from pliant.core.errors import PliantError, UserError
from pliant.tracking.tracker import Outcome


class GenerationLost(PliantError):
    """A member of the present generation is gone, or the coordinator gave the generation up."""


class Departed(SystemExit):
    """This task has left the job; the process ends with code 0."""

    def __init__(self, reason: str, outcome: Outcome = Outcome.HANDED_OVER) -> None:
        """Leave for a reason; `outcome` is what becomes of the training without this task."""
        super().__init__(0)
        self.reason = reason
        self.outcome = outcome


class TrainingError(UserError):
    """The script, its arguments or its data cannot be trained like this."""


class DamagedCheckpoint(TrainingError):
    """A file that should be a checkpoint is torn, changed, or something else."""
