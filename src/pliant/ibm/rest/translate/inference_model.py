"""What is kept of a model of IBM's inference API beside its endpoint: what people wrote that this has no place for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceModelRecord:
    """What people said of one model."""

    KIND: ClassVar[str] = "edi-model"

    name: str
    """Of its endpoint."""
    owner: str
    made_at: float
    """When that endpoint was made."""
    description: Mapping[str, object] = field(default_factory=dict)
    """`model.json` of the newest package, with the tag and the attributes that were changed since."""
    readme: str = ""
    profile: Mapping[str, object] = field(default_factory=dict)
    """The part of the application profile that Pliant has no equal for, by IBM's names."""
