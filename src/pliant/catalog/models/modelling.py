"""Templates, models and their trainings, put together."""

from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from pliant.catalog.models.bundle import Bundle
from pliant.catalog.models.code_folders import CodeFolders
from pliant.catalog.models.kept_files import KeptFiles
from pliant.catalog.models.models import Models
from pliant.catalog.models.ports import Ports
from pliant.catalog.models.templates import Templates
from pliant.catalog.models.trainings import Trainings
from pliant.core.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelling:
    """All there is of models."""

    templates: Templates
    models: Models
    trainings: Trainings


def modelling(registry: Registry, home: Path, ports: Ports) -> Modelling:
    """Return the use cases over a state folder, and forget what a killed server has left half done in it.

    HOME/templates holds the files of templates, HOME/trainings the code and first weights of trainings.
    """
    lock = RLock()
    folders = CodeFolders(home / "templates")
    kept_files = KeptFiles(home / "trainings")
    templates = Templates(registry=registry, folders=folders, ports=ports, lock=lock)
    models = Models(registry=registry, templates=templates, ports=ports, lock=lock)
    bundle = Bundle(folders=folders, kept_files=kept_files, drafts=home / "uploads")
    trainings = Trainings(
        registry=registry, models=models, bundle=bundle, kept_files=kept_files, ports=ports, lock=lock
    )
    folders.clean()
    trainings.clean()
    return Modelling(templates=templates, models=models, trainings=trainings)
