"""The weights that a training starts from: finds their file, and says whether it can be one."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.catalog.models.ports import Jobs
from pliant.catalog.models.training import Training
from pliant.core.access import Principal
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.model import WeightsSource
from pliant.files.members import ArchiveLimits, Inspection
from pliant.files.untrusted.opening import OpenFile, hollowness, is_file, open_file
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.zipped import member_of

_LIMITS: Final = ArchiveLimits(max_bytes=1 << 40, max_files=1_000_000, hint="save a state_dict and nothing else")
UPLOADED: Final = "file"
"""The source of weights that came with the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsFile:
    """Weights that are there."""

    source: str
    """As `Origin.source`."""
    path: UntrustedPath


class InitialWeights:
    """Finds the weights that somebody asks for.

    Args:
        get: returns a training of a model by its title, if somebody sees it.
    """

    def __init__(self, *, jobs: Jobs, get: Callable[[Principal, str, str], Training]) -> None:
        self._jobs = jobs
        self._get = get

    def find(
        self, caller: Principal, model: str, asked: WeightsSource | None, uploaded: Path | None
    ) -> WeightsFile | None:
        """Return the weights for a training of a model; None if it starts from its own.

        Raises:
            InvalidInput: there are no such weights.
        """
        if uploaded is not None:
            if asked is not None:
                raise _bad("a file was sent, and those of a training or a job were asked for; give one of the two")
            check_weights(uploaded)
            return WeightsFile(source=UPLOADED, path=UntrustedPath(uploaded.parent, uploaded.name))
        if asked is None:
            return None
        try:
            if asked.job is not None:
                job = self._jobs.require_visible(asked.job, caller)
                return self._require_saved(job.id, job.id)
            training = self._get(caller, asked.model or model, asked.training or "")
            return self._require_saved(training.name, training.job_id)
        except NotFound as error:
            raise _bad(str(error)) from error

    def _require_saved(self, source: str, job_id: str) -> WeightsFile:
        path = self._jobs.weights(job_id)
        if not is_file(path):
            raise NotFound(f"{source} has no weights; they are there as soon as it has saved its model")
        return WeightsFile(source=source, path=path)


@contextmanager
def open_weights(found: WeightsFile) -> Iterator[OpenFile]:
    """Yield weights, to be copied before anything looks at them.

    Raises:
        InvalidInput: something else lies in their place, and why it is not taken.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(found.path))
            why = hollowness(file.facts)
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            raise _bad(f"the weights of {found.source} cannot be read: {why}; save the model again, or start without")
        yield file


def check_weights(path: Path) -> None:
    """See that a file may be a `state_dict`; only a task loads it, and runs nothing of it.

    The names of its members are held to the rules of all archives, though it is not unpacked here.

    Raises:
        InvalidInput: it is no file of torch's.
        TooLarge: a bomb.
    """
    inspection = Inspection(limits=_LIMITS, archive_bytes=path.stat().st_size, field="weights")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for info in archive.infolist():
                if not inspection.take(member_of(info)):
                    break
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        names = []
    if not any(name.endswith("/data.pkl") for name in names):
        raise _bad("it is no file that torch.save wrote; send one that holds a state_dict")
    inspection.contents()


def _bad(message: str) -> InvalidInput:
    return InvalidInput.at("weights", message)
