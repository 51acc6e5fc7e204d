"""What a submission in IBM's words can name on this server: queues, data sets and environments that its sender sees."""

from pathlib import Path

from pliant.core.access import Principal
from pliant.core.dataset import Dataset
from pliant.core.job import JobSpec
from pliant.core.registry import MAX_NAME
from pliant.ibm.rest.groups import queue_names
from pliant.ibm.rest.routes.site import python_version
from pliant.ibm.rest.translate.job_request import Here
from pliant.server.context import Context


def here_of(context: Context, caller: Principal) -> Here:
    """Return what somebody can name."""

    def has_dataset(name: str) -> bool:
        kept = context.registry.get(Dataset, name) if 0 < len(name) <= MAX_NAME else None
        return kept is not None and caller.sees(kept.noun.owner, kept.noun.shared_with)

    def has_environment(text: str) -> bool:
        spec = JobSpec(name=text, script=text, virtual_workers=1, environment=text)
        return not context.environments.problems(spec, "", sight=context.sharing.sight(caller))

    return Here(
        user=caller.name,
        python_version=python_version(),
        queues=queue_names(context),
        has_dataset=has_dataset,
        has_environment=has_environment,
        data_folder=lambda path: _below(context.datasets.data_root, path),
    )


def _below(root: Path, path: str) -> str | None:
    """Return the whole path of a folder below the data root, where links lead nowhere else."""
    try:
        found = (root / path).resolve()
        return str(found) if found.is_relative_to(root.resolve()) and found.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, links in a ring, a NUL
        return None
