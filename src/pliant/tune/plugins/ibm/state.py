"""What a plug-in continues from (`PluginState`), as JSON.

A plug-in with `get_state` is given back what it returned, and the shared generators are where they were. Of one without
there is the log of its calls: what it was told, and a digest of what it answered. They are made again, and if the
answers are the same, it is as it was.
"""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, cast

from pliant.core.space import Value, Values
from pliant.tune.advice import AdviserFailure
from pliant.tune.plugins.ibm.results import ExperimentState, TrialOutcome, ranges_of

MAX_STATE_BYTES: Final = 4 << 20
_FORM: Final = 1


@dataclass(frozen=True, slots=True)
class PluginCall:
    """A call of `search`."""

    outcomes: tuple[TrialOutcome, ...]
    """What it was told; of the first call that had nothing to tell, none."""
    digest: str
    """Of what it answered."""


@dataclass(slots=True, kw_only=True)
class PluginState:
    """What is known after the newest call."""

    learned: set[int] = field(default_factory=set)
    """Trials that it knows the end of."""
    waiting: list[Values] = field(default_factory=list)
    """What it answered beyond what was asked for; the next trials have it."""
    calls: list[PluginCall] = field(default_factory=list)
    """All of one without `get_state`; else none."""
    kept: Any = None
    """What `get_state` returned and where the shared generators are, as JSON has it; None without `get_state`."""
    has_begun: bool = False
    """It was called before."""


def digest_of(answers: list[Values]) -> str:
    """Return what is the same for the same answers."""
    return sha256(json.dumps([list(one.items()) for one in answers]).encode()).hexdigest()[:16]


def dump_plugin(who: str, state: PluginState) -> str:
    """Return a state as text.

    Raises:
        AdviserFailure: it is too large.
    """
    calls = [[[[one.number, one.state, one.metric] for one in call.outcomes], call.digest] for call in state.calls]
    kept = {
        "ibm": _FORM,
        "learned": ranges_of(state.learned),
        "waiting": state.waiting,
        "calls": calls,
        "kept": state.kept,
        "has_begun": state.has_begun,
    }
    text = json.dumps(kept, separators=(",", ":"), allow_nan=False)
    if len(text) > MAX_STATE_BYTES:
        what = "get_state of it returns" if state.kept is not None else "the log of its calls has"
        how = "return less" if state.kept is not None else "write get_state and set_state"
        raise AdviserFailure(f"{who} cannot go on: {what} {len(text):,} bytes, {MAX_STATE_BYTES:,} are the most; {how}")
    return text


def load_plugin(who: str, text: str) -> PluginState:
    """Return the state that a text is; of an empty one, that before the first call.

    Raises:
        AdviserFailure: it is none.
    """
    if not text:
        return PluginState()
    try:
        kept = json.loads(text)
        if kept["ibm"] != _FORM:
            raise ValueError(f"it has the form {kept['ibm']!r:.80}")
        return PluginState(
            learned={number for first, last in kept["learned"] for number in range(first, last + 1)},
            waiting=[{name: _value(one) for name, one in values.items()} for values in kept["waiting"]],
            calls=[_call(*call) for call in kept["calls"]],
            kept=kept["kept"],
            has_begun=bool(kept["has_begun"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error!s:.200}"
        raise AdviserFailure(f"the state of {who} cannot be read: {why}; begin a new search") from error


def _call(outcomes: list[list[Any]], digest: str) -> PluginCall:
    made = (TrialOutcome(number, cast(ExperimentState, state), metric) for number, state, metric in outcomes)
    return PluginCall(tuple(made), digest)


def _value(kept: Any) -> Value:
    """Return a value as it was; lists of values are tuples."""
    return cast(Value, tuple(map(_value, kept)) if isinstance(kept, list) else kept)
