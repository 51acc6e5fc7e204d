"""What the trials of a search over a model run: its code with what was entered, and the job that they all are.

A trial puts its values in place of what was entered when it is queued; here is seen whether that will go well. Nothing
is kept: whoever begins a search keeps the code, and what becomes of the model later changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pliant.catalog.models.code_archive import CodeArchives
from pliant.catalog.models.model import Model, problems_of_model
from pliant.catalog.models.models import ModelCatalog, apply_changes
from pliant.catalog.models.trainings import job_spec
from pliant.core.access import Principal
from pliant.core.entered import changes_of, misfit, split
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import JobSpec
from pliant.core.space import Values

_TITLE: Final = "trial"


class TrialCode:
    """Packs what trials of models run. Safe to call from any thread."""

    def __init__(self, *, models: ModelCatalog, archives: CodeArchives, lock: RLock) -> None:
        self._models = models
        self._archives = archives
        self._lock = lock  # of templates and models, too: code that is being packed stays until it is

    def pack(
        self, caller: Principal, name: str, changes: Mapping[str, Any], samples: Iterable[Values], to: Path
    ) -> JobSpec:
        """Write the code of a model as it is with some changes into an archive; return the job that trains it.

        Args:
            changes: of the model, for these trials only.
            samples: values that trials may have, to see whether they fit; the least batch among them counts for how
                finely a batch can be cut.

        Raises:
            NotFound: there is no such model that they see.
            InvalidInput: with everything that does not fit.
            Unavailable: the disk cannot take it.
        """
        with self._lock:
            model = apply_changes(self._models.get(caller, name).noun, changes)
            problems: dict[Problem, None] = {}
            tried: list[Model] = []
            for values in samples:
                wrong, sample = _with_values(model, values)
                problems.update(dict.fromkeys(wrong))
                tried.append(sample)
            if problems:
                raise InvalidInput(*problems)
            first = tried[0] if tried else model
            batch = min((one.hyperparameters.batch_size for one in tried), default=model.hyperparameters.batch_size)
            own = {**first.parameters, **model.parameters}  # a parameter without a default may be one that is chosen
            ran, _ = self._models.for_training(caller, name, {**changes, "parameters": own})
            self._archives.write(ran, to)
            smallest = replace(ran, hyperparameters=replace(ran.hyperparameters, batch_size=batch))
            return job_spec(smallest, _TITLE, None, args=self._archives.args(ran))


def changes_of_values(values: Values) -> dict[str, Any]:
    """Return the change of a model that gives it the values of a trial."""
    numbers, own = split(values)
    return {"hyperparameters": changes_of(numbers), "parameters": own}


def _with_values(model: Model, values: Values) -> tuple[Iterable[Problem], Model]:
    """Return what is wrong with the values of a trial, and the model with them."""
    numbers, _ = split(values)
    wrong = [
        Problem(field=f"hyperparameters.{name}", message=message)
        for name, value in numbers.items()
        if (message := misfit(name, value))
    ]
    if wrong:
        return wrong, model
    sample = apply_changes(model, changes_of_values(values))
    return problems_of_model(sample), sample
