"""What the job of a trial is asked for."""

from dataclasses import replace
from typing import Final

from pliant.core.job import JobSpec
from pliant.core.search import Search, Trial
from pliant.core.space import text_of_value
from pliant.core.trial_part import TrialPart

_MAX_NAME: Final = 120


def spec_of(search: Search, trial: Trial, parent: Trial | None = None) -> JobSpec:
    """Return what the job of a trial is asked for.

    Args:
        search: whose it is.
        trial: the trial.
        parent: the trial from whose state it begins.
    """
    pass_as, population = search.settings.pass_as, search.settings.population
    values = {name: text_of_value(value) for name, value in trial.values.items()}
    arguments = [f"--{name}={text}" for name, text in values.items()] if "arguments" in pass_as else []
    return replace(
        search.job,
        name=f"{search.name}#{trial.number}"[:_MAX_NAME],
        args=(*search.job.args, *arguments),
        trial=TrialPart(
            search=search.name,
            number=trial.number,
            values=trial.values,
            pass_as=pass_as,
            keep_every=0 if population is None else population.every,
            parent_job="" if parent is None else parent.job_id,
            parent_epoch=trial.parent_epoch,
        ),
    )
