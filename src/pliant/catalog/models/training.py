"""Trainings: what a model was when it was trained, the job that did it, and what that began with. Never changes."""

from dataclasses import dataclass
from typing import ClassVar, Final

from pliant.catalog.models.model import Model
from pliant.core.model import Origin

SEPARATOR: Final = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One training of a model."""

    KIND: ClassVar[str] = "training"

    name: str
    """Its model's name and its own, as `key_of` makes it."""
    owner: str
    """Who started it."""
    ran: Model
    """The model as it was, with what was given for this training only."""
    job_id: str = ""
    """Empty while its job is being submitted."""
    code_hash: str
    """SHA-256 of the archive of code and parameters, which is kept under it."""
    dataset_checksum: str = ""
    origin: Origin | None = None
    """The weights that it started from, which are kept under their checksum."""
    created_at: float

    @property
    def model(self) -> str:
        """The name of its model."""
        return self.name.partition(SEPARATOR)[0]

    @property
    def title(self) -> str:
        """Its own name among the trainings of the model."""
        return self.name.partition(SEPARATOR)[2]


def key_of(model: str, title: str) -> str:
    """Return the name that a training is kept under."""
    return f"{model}{SEPARATOR}{title}"
