"""The data set of a job: where it lies is written into what was asked for, and from there into its tasks' variables."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from pliant.core.access import Sight
from pliant.core.dataset import DataPlace, DataPlaces
from pliant.core.errors import Problem
from pliant.core.job import JobSpec
from pliant.core.preparation import Preparations

MoreProblems = Callable[[str], tuple[Problem, ...]]


class NoData:
    """`DataPlaces` of a server that keeps no data sets."""

    @contextmanager
    def using(self, name: str | None, sight: Sight | None) -> Iterator[DataPlace | Problem | None]:  # noqa: ARG002
        """Refuse every name."""
        yield None if name is None else Problem(field="dataset", message=f"there is no data set {name!r:.80} here")


@contextmanager
def placed(
    spec: JobSpec, data: DataPlaces, sight: Sight | None, preparations: Preparations
) -> Iterator[tuple[JobSpec, MoreProblems]]:
    """Yield what was asked for with the place of its data set, which nobody removes until the end of the block.

    With it comes what tells of what is wrong, given the folder of the code: what cannot be prepared, and a data set
    that cannot be used.
    """
    with data.using(spec.dataset, sight) as found:
        if isinstance(found, DataPlace):
            spec = replace(spec, data_dir=found.folder, data_parts=found.parts)
        missing = (found,) if isinstance(found, Problem) else ()
        yield spec, lambda code: (*missing, *preparations.problems(spec, code, sight=sight))
