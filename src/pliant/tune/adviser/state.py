"""What a sampler continues from and no trial holds: its generators, GP's last fits, and what it notes with the study.

It is JSON, found by walking the sampler's attributes; nothing is pickled.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.samplers import BaseSampler, GPSampler
from optuna.samplers._lazy_random_state import LazyRandomState

from pliant.tune.advice import AdviserFailure

_ALGORITHM: Final = "MT19937"
_NUM_WORDS: Final = 624
_KEPT_GENERATIONS: Final = 3
_OBJECTIVES: Final = "_gprs_cache_list"
_BOUNDED: Final = "_constraints_gprs_cache_list"
"""Where GP keeps its last fits: of the objectives, of what constraints bound."""
_PARENTS: Final = "NSGAIISampler:parent:"
"""NSGA-II notes the parents of every generation, and looks at those of the newest two."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a fitted process GP begins the next fit from: of `GPRegressor` the only attributes that it reads."""

    inverse_squared_lengthscales: Any
    kernel_scale: Any
    noise_var: Any


def generators_of(sampler: BaseSampler) -> dict[str, LazyRandomState]:
    """Return a sampler's generators by where they are, each once."""
    return {path: one for path, one in _walk(sampler, "", set()) if isinstance(one, LazyRandomState)}


def dump_state(sampler: BaseSampler, attributes: dict[str, Any]) -> str:
    """Return the state of a sampler.

    Args:
        attributes: what it has noted with the study.
    """
    state = {
        "optuna": optuna.__version__,
        "generators": {path: _dump_generator(one.rng) for path, one in generators_of(sampler).items()},
        "fits": [_dump_fit(fit) for fit in _fits_of(sampler, _OBJECTIVES)],
        "constraint_fits": [_dump_fit(fit) for fit in _fits_of(sampler, _BOUNDED)],
        "attributes": _without_old_parents(attributes),
    }
    return json.dumps(state, separators=(",", ":"))


def load_state(text: str, sampler: BaseSampler) -> dict[str, Any]:
    """Give a sampler the state that another one had; return what was noted with the study.

    Raises:
        AdviserFailure: it is no state of such a sampler.
    """
    try:
        state = json.loads(text)
        version, kept = state["optuna"], state["generators"]
        generators = generators_of(sampler)
        if kept.keys() != generators.keys():
            raise ValueError(f"its generators are {sorted(kept)}, not {sorted(generators)}")
        for path, generator in generators.items():
            generator.rng.set_state(_load_generator(kept[path]))
        if state["fits"]:
            _restore_fits(sampler, _OBJECTIVES, state["fits"])
        if state.get("constraint_fits"):
            _restore_fits(sampler, _BOUNDED, state["constraint_fits"])
        return dict(state["attributes"])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        written = f" It was written by Optuna {version}." if "version" in locals() else ""
        raise AdviserFailure(
            f"the state of the sampler cannot be read: {type(error).__name__}: {error!s:.200}.{written} "
            f"This is Optuna {optuna.__version__}; begin a new search"
        ) from error


def _walk(one: object, path: str, seen: set[int]) -> Iterator[tuple[str, object]]:
    """Yield all that hangs on a sampler and is Optuna's."""
    if id(one) in seen:
        return
    seen.add(id(one))
    yield path, one
    for name, inner in vars(one).items():
        if type(inner).__module__.startswith("optuna.samplers") and hasattr(inner, "__dict__"):
            yield from _walk(inner, f"{path}.{name}" if path else name, seen)


def _dump_generator(generator: np.random.RandomState) -> list[Any]:
    _, words, position, has_gauss, gauss = generator.get_state(legacy=True)
    return [base64.b64encode(np.asarray(words, "<u4").tobytes()).decode(), int(position), int(has_gauss), float(gauss)]


def _load_generator(given: Any) -> tuple[str, NDArray[np.uint32], int, int, float]:
    text, position, has_gauss, gauss = given
    try:
        words = np.frombuffer(base64.b64decode(text, validate=True), "<u4").astype(np.uint32)
    except binascii.Error as error:
        raise ValueError(f"a generator is no base64: {error}") from error
    if len(words) != _NUM_WORDS or not 0 <= int(position) <= _NUM_WORDS:
        raise ValueError(f"a generator has {len(words)} words and is at {position}")
    return _ALGORITHM, words, int(position), int(has_gauss), float(gauss)


def _fits_of(sampler: BaseSampler, where: str) -> list[Fit]:
    return (getattr(sampler, where) or []) if isinstance(sampler, GPSampler) else []


def _dump_fit(fit: Fit) -> list[Any]:
    return [fit.inverse_squared_lengthscales.tolist(), fit.kernel_scale.item(), fit.noise_var.item()]


def _restore_fits(sampler: BaseSampler, where: str, given: list[Any]) -> None:
    if not isinstance(sampler, GPSampler):
        raise TypeError("only GP has fits")
    import torch  # takes a second, and no other sampler needs it

    def tensor(numbers: Any) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.float64)

    setattr(sampler, where, [Fit(tensor(scales), tensor(scale), tensor(noise)) for scales, scale, noise in given])


def _without_old_parents(attributes: dict[str, Any]) -> dict[str, Any]:
    generations = sorted(int(name.removeprefix(_PARENTS)) for name in attributes if name.startswith(_PARENTS))
    old = {f"{_PARENTS}{generation}" for generation in generations[:-_KEPT_GENERATIONS]}
    return {name: value for name, value in attributes.items() if name not in old}
