"""What is kept of an HPO task beside its search, so that it is shown as it was sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class HpoRecord:
    """Of one search that was begun through IBM's API."""

    KIND: ClassVar[str] = "wmla-hpo"

    name: str
    """The search's."""
    owner: str
    made_at: float
    """When the search was begun: one of the same name that was begun later is another."""
    args: str = ""
    """As they were sent, without secrets."""
    instance_group: str = ""
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    """`algoDef`, as it came."""
    hyper_params: tuple[Mapping[str, Any], ...] = ()
    """`hyperParams`, as they came."""
    experiment_ids: tuple[int, ...] = ()
    """Those that experiments were given, in the order of their trials."""
    model: str = ""
    """Which model it tunes; empty: it runs a program that was sent."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    """`resDef`, as it came."""
    names: Mapping[str, str] = field(default_factory=dict)
    """IBM's names of hyperparameters of a model, by Pliant's."""
    notes: tuple[str, ...] = ()
    """What of it has no effect, and why."""
