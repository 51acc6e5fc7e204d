"""An error as REST says it."""

from pydantic import BaseModel, Field


class ProblemItem(BaseModel):
    """One wrong field."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """An error, in the form of RFC 9457 (`application/problem+json`)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    problems: list[ProblemItem] = Field(default_factory=list)
