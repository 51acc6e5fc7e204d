"""The REST bodies about what is kept, and for how long."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from pliant.api.request import Request
from pliant.core.upkeep import Material, Rule

_DAY_S = 86_400.0


class RuleRequest(Request):
    """How long one kind of thing is kept."""

    material: Material
    max_age_days: Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)] | None = None
    """Days since the end of the job; of the audit log, since the entry was written."""
    max_bytes: Annotated[int, Field(ge=0, le=2**62, strict=True)] | None = None
    """Of all jobs together; what the longest ended jobs hold goes first."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.max_age_days is None and self.max_bytes is None:
            raise ValueError("a rule limits something: give max_age_days or max_bytes")
        if self.material is Material.AUDIT and self.max_bytes is not None:
            raise ValueError("the audit log is limited by age only: give max_age_days, and leave max_bytes out")
        return self


class RetentionRequest(Request):
    """All rules; they replace those there were. Without rules everything is kept."""

    rules: Annotated[tuple[RuleRequest, ...], Field(max_length=len(Material))] = ()

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        given = [rule.material for rule in self.rules]
        if twice := sorted({material for material in given if given.count(material) > 1}):
            raise ValueError(f"there are two rules for {', '.join(twice)}; give one for each kind of thing")
        return self

    def nouns(self) -> tuple[Rule, ...]:
        """Return the rules as nouns."""
        return tuple(
            Rule(
                material=rule.material,
                max_age_s=None if rule.max_age_days is None else rule.max_age_days * _DAY_S,
                max_bytes=rule.max_bytes,
            )
            for rule in self.rules
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionView:
    """The rules and the number of their revision, 0 if none were ever given."""

    rules: tuple[Rule, ...]
    revision: int
