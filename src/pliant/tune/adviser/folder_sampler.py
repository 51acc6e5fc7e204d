"""A sampler for Optuna that somebody has written: `sampler.py` at the top of a folder (`FolderSampler`).

It has `def make_sampler(seed, **options)`, or `class PluginSampler(BaseSampler)` that is called so. It is asked as
Optuna's own are, about a study that is rebuilt from trials. What it continues from is what `state` keeps of every
sampler, generators of Python and numpy among its attributes, the shared ones, and what its `get_state` returns. What is
in none of these is lost when another process goes on.
"""

import json
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from optuna.samplers import BaseSampler
from optuna.samplers._lazy_random_state import LazyRandomState

from pliant.core.search import SearchSettings
from pliant.tune.advice import AdviserFailure, AdviserInput
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser.state import dump_state, load_state
from pliant.tune.plugins.code import class_of, keeps_state, load
from pliant.tune.plugins.encoding import NotEncodable, decode, encode
from pliant.tune.plugins.failures import failures_of
from pliant.tune.plugins.found_code import FoundCode
from pliant.tune.plugins.generators import dump_python, dump_shared, load_python, load_shared, seed_shared

_MODULE: Final = "sampler"
_CLASS: Final = "PluginSampler"
_FUNCTION: Final = "make_sampler"
_MAX_WALKED: Final = 10_000
_Generator = np.random.Generator | np.random.RandomState | random.Random


def folder_adviser(opening: AdviserInput, folder: Path) -> OptunaAdviser:
    """Return an adviser that asks the sampler of a folder.

    Raises:
        AdviserFailure: it cannot be made, or the state is not its.
    """
    return OptunaAdviser(opening, FolderSampler(opening.settings, folder))


def look_at_sampler(who: str, folder: Path) -> FoundCode:
    """Return what is in a folder, without a search.

    Raises:
        AdviserFailure: no sampler.
    """
    maker = _maker(who, load(who, folder, _MODULE))
    is_class = isinstance(maker, type)
    return FoundCode(name=_CLASS if is_class else _FUNCTION, has_state=is_class and keeps_state(maker, object))


class FolderSampler:
    """Makes the sampler of a folder: a `SamplerSource`."""

    def __init__(self, settings: SearchSettings, folder: Path) -> None:
        """Take a search, whose sampler has the algorithm's name."""
        self._settings = settings
        self._folder = folder
        self._who = f"the algorithm {settings.sampler.name}"

    def make(self) -> BaseSampler:
        """Make it, from a file that is run anew, and with the shared generators as at the beginning."""
        seed_shared(self._settings.sampler.seed)
        maker = _maker(self._who, load(self._who, self._folder, _MODULE))
        with failures_of(self._who, maker.__name__, self._folder):
            sampler = maker(seed=self._settings.sampler.seed, **self._settings.sampler.options)
        if not isinstance(sampler, BaseSampler):
            raise AdviserFailure(f"{_FUNCTION} of {self._who} returns no BaseSampler of Optuna's; return one")
        return sampler

    def dump(self, sampler: BaseSampler, attributes: dict[str, Any]) -> str:
        own = sampler.get_state() if keeps_state(type(sampler), object) else None  # type: ignore[attr-defined]
        try:
            kept = {
                "study": dump_state(sampler, attributes),
                "generators": {path: _dump(one) for path, one in self._generators_of(sampler).items()},
                "own": encode(own),
                "shared": dump_shared(),
            }
            return json.dumps(kept, separators=(",", ":"))
        except NotEncodable as error:
            raise AdviserFailure(f"what get_state of {self._who} returned cannot be kept: {error}") from error

    def load(self, text: str, sampler: BaseSampler) -> dict[str, Any]:
        try:
            kept = json.loads(text)
            attributes = load_state(kept["study"], sampler)
            if keeps_state(type(sampler), object):
                sampler.set_state(decode(kept["own"]))  # type: ignore[attr-defined]
            generators = self._generators_of(sampler)
            if generators.keys() != kept["generators"].keys():
                raise ValueError(f"its generators are {sorted(kept['generators'])}, not {sorted(generators)}")
            for path, generator in generators.items():
                _load(generator, kept["generators"][path])
            load_shared(kept["shared"])
        except (ValueError, TypeError, KeyError) as error:
            why = f"{type(error).__name__}: {error!s:.200}"
            raise AdviserFailure(f"the state of {self._who} cannot be read: {why}; begin a new search") from error
        return attributes

    @contextmanager
    def failures(self, what: str) -> Iterator[None]:
        """Also let warnings be printed."""
        with failures_of(self._who, f"{_MODULE}.py when it had to {what}", self._folder), warnings.catch_warnings():
            warnings.simplefilter("default")
            yield

    def _generators_of(self, sampler: BaseSampler) -> dict[str, _Generator]:
        """Return generators by where they hang on a sampler, each once; those that `state` knows are not there."""
        found: dict[str, _Generator] = {}
        left: list[tuple[str, object]] = [("", sampler)]
        seen: set[int] = set()
        while left and len(seen) < _MAX_WALKED:
            path, one = left.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, _Generator):
                found[path] = one
            elif isinstance(one, dict):
                left += [(f"{path}.{key}", inner) for key, inner in one.items() if isinstance(key, str | int)]
            elif isinstance(one, list | tuple):
                left += [(f"{path}.{i}", inner) for i, inner in enumerate(one)]
            elif not isinstance(one, LazyRandomState) and self._is_walked(one):
                left += [(f"{path}.{name}", inner) for name, inner in vars(one).items()]
        return found

    def _is_walked(self, one: object) -> bool:
        """Tell whether generators may hang on an object: it is Optuna's, or of the folder's code."""
        name = type(one).__module__
        if not hasattr(one, "__dict__") or isinstance(one, type | ModuleType):
            return False
        file = getattr(sys.modules.get(name), "__file__", None) or "/"
        return name.startswith("optuna.samplers") or Path(file).is_relative_to(self._folder)


def _maker(who: str, module: ModuleType) -> Any:
    """Return what makes a sampler: a class, or a function."""
    kind, function = class_of(module, _CLASS, BaseSampler), vars(module).get(_FUNCTION)
    if kind is None and not callable(function):
        what = f"def {_FUNCTION}(seed, **options), or class {_CLASS}(BaseSampler)"
        raise AdviserFailure(f"{_MODULE}.py of {who} has no {what}; write one")
    if kind is not None and function is not None:
        raise AdviserFailure(f"{_MODULE}.py of {who} has {_FUNCTION} and {_CLASS}; write one of them")
    return kind or function


def _dump(generator: _Generator) -> Any:
    match generator:
        case random.Random():
            return dump_python(generator)
        case np.random.RandomState():
            return encode(generator.get_state())
        case np.random.Generator():
            return encode(generator.bit_generator.state)


def _load(generator: _Generator, kept: Any) -> None:
    match generator:
        case random.Random():
            load_python(generator, kept)
        case np.random.RandomState():
            generator.set_state(decode(kept))
        case np.random.Generator():
            generator.bit_generator.state = decode(kept)
