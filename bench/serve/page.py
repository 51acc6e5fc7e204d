"""Writes the report of serving, and puts all claims together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench._report import Claim, head, verdicts
from bench.serve import cnn, echo, life
from bench.serve.cnn import CnnFound
from bench.serve.echo import EchoFound
from bench.serve.life import LifeFound

NOTES = """How each is run, with one process that computes and one thread in it:

- **Pliant**: a real `pliant up`; one endpoint of a Python class with one kernel, settings as shipped but for the number
  of kernels. The gateway and the kernel are two processes. Every request carries a token, which is checked.
- **plain uvicorn**: an ASGI function that sends the body back; once as `pip install uvicorn` has it (h11, asyncio),
  once with httptools and uvloop.
- **Ray Serve**: one replica of a class; as shipped, and once with `RAY_SERVE_THROUGHPUT_OPTIMIZED=1`,
  `RAY_SERVE_ENABLE_HA_PROXY=1` and `max_ongoing_requests=1000`. Its log of requests is off.
- **MLServer**: its inference pool as shipped, with one worker. **LitServe**: one worker, as shipped.
- **BentoML**: one worker; `async` where it does not compute.
"""


@dataclass(slots=True)
class Found:
    """All that was found."""

    echo: EchoFound = field(default_factory=EchoFound)
    cnn: CnnFound = field(default_factory=CnnFound)
    life: LifeFound = field(default_factory=LifeFound)
    num_rounds: dict[str, int] = field(default_factory=dict)
    """That were begun, by model."""
    troubles: dict[str, str] = field(default_factory=dict)
    """Why a side had no turn."""


def claims(found: Found) -> Iterator[Claim]:
    """Yield every claim with what was found."""
    yield from echo.claims(found.echo)
    yield from cnn.claims(found.cnn)
    yield from life.claims(found.life)


def page(found: Found, missing: Mapping[str, str], command: str, judged: Sequence[Claim], pins: str, cores: str) -> str:
    """Return the report as Markdown."""
    rounds = ", ".join(f"{model}: {num}" for model, num in found.num_rounds.items()) or "none"
    parts = [
        head("How fast endpoints answer, against other systems", command),
        f"{cores[:1].upper()}{cores[1:]}. Peers: {pins}. Figures are medians [min max] of the rounds ({rounds}).\n",
        *(f"**{peer} could not be installed and is not in the tables:** {why}\n" for peer, why in missing.items()),
        NOTES,
        verdicts(judged),
        *([echo.section(found.echo)] if found.echo.turns else []),
        *([cnn.section(found.cnn)] if found.cnn.turns else []),
        *([life.section(found.life)] if found.life.from_zero_s else []),
        *(f"- {who} had no turn: {why}\n" for who, why in found.troubles.items()),
    ]
    return "\n".join(parts)
