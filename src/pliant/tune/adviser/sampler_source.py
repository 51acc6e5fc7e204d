"""Where a search's sampler comes from, and how what it continues from is kept (`SamplerSource`)."""

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from optuna.samplers import BaseSampler

from pliant.core.errors import PliantError
from pliant.core.search import SearchSettings
from pliant.tune.advice import AdviserFailure
from pliant.tune.adviser.samplers import make_sampler
from pliant.tune.adviser.state import dump_state, load_state


class SamplerSource(Protocol):
    """Makes the sampler of one search."""

    def make(self) -> BaseSampler:
        """Make the sampler, as it is before its first trial."""
        ...

    def dump(self, sampler: BaseSampler, attributes: dict[str, Any]) -> str:
        """Return what a sampler continues from, as JSON.

        Args:
            attributes: what it has noted with the study.
        """
        ...

    def load(self, text: str, sampler: BaseSampler) -> dict[str, Any]:
        """Give a sampler what another one continues from; return what was noted with the study.

        Raises:
            AdviserFailure: it is of no such sampler.
        """
        ...

    def failures(self, what: str) -> AbstractContextManager[None]:
        """Let everything that is raised be an `AdviserFailure`; `what` could not be done."""
        ...


class BuiltInSampler:
    """A sampler of Optuna's own."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings

    def make(self) -> BaseSampler:
        return make_sampler(self._settings)

    def dump(self, sampler: BaseSampler, attributes: dict[str, Any]) -> str:
        return dump_state(sampler, attributes)

    def load(self, text: str, sampler: BaseSampler) -> dict[str, Any]:
        return load_state(text, sampler)

    @contextmanager
    def failures(self, what: str) -> Iterator[None]:
        """Also let warnings be nobody's business."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except PliantError:
            raise
        except Exception as error:
            raise AdviserFailure(f"Optuna cannot {what}: {type(error).__name__}: {error!s:.500}") from error
