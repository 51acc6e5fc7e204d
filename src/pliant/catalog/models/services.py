"""Templates, models and their trainings, put together."""

from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from pliant.catalog.models.code_archive import CodeArchives
from pliant.catalog.models.code_folders import CodeFolders
from pliant.catalog.models.models import ModelCatalog
from pliant.catalog.models.ports import Ports
from pliant.catalog.models.templates import TemplateCatalog
from pliant.catalog.models.trainings import Trainings
from pliant.catalog.models.trial_code import TrialCode
from pliant.core.registry import Registry
from pliant.files.content_store import ContentStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServices:
    """The use cases of templates, models and trainings of one server."""

    templates: TemplateCatalog
    models: ModelCatalog
    trainings: Trainings
    trial_code: TrialCode
    """What searches over models run."""


def open_models(registry: Registry, home: Path, ports: Ports) -> ModelServices:
    """Return the use cases over a state folder, and forget what a killed server has left half done in it.

    HOME/templates holds the files of templates, HOME/trainings the code and first weights of trainings.
    """
    lock = RLock()
    folders = CodeFolders(home / "templates")
    contents = ContentStore(home / "trainings")
    templates = TemplateCatalog(registry=registry, folders=folders, ports=ports, lock=lock)
    models = ModelCatalog(registry=registry, templates=templates, ports=ports, lock=lock)
    archives = CodeArchives(folders=folders, contents=contents, drafts=home / "uploads")
    trainings = Trainings(
        registry=registry, models=models, archives=archives, contents=contents, ports=ports, lock=lock
    )
    folders.clean()
    trainings.clean()
    trial_code = TrialCode(models=models, archives=archives, lock=lock)
    return ModelServices(templates=templates, models=models, trainings=trainings, trial_code=trial_code)
