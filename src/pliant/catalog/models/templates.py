"""The use cases of templates: list, show, add, replace, remove, and hand out their files.

A template that models are made from stays as it was for them: a later revision has another folder, and the folder of
the former one stays as long as a model needs it.
"""

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock

from pliant.catalog.models.code_folders import CodeFolders, find_elastic_file, folder_name, problem_of_file
from pliant.catalog.models.model import Model, Template, said_of
from pliant.catalog.models.ports import Ports
from pliant.catalog.sharing import require_owner, require_visible, visible_page
from pliant.core.access import Principal
from pliant.core.errors import Conflict, InvalidInput, Problem
from pliant.core.model import TemplateSettings
from pliant.core.parameter import problems_of
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.shares import problems_of_shares

_MAX_NAMED = 8


class TemplateCatalog:
    """All templates. Safe to call from any thread."""

    def __init__(self, *, registry: Registry, folders: CodeFolders, ports: Ports, lock: RLock) -> None:
        self._registry = registry
        self._folders = folders
        self._ports = ports
        self._lock = lock

    def page(self, caller: Principal, after: str, limit: int) -> tuple[tuple[Kept[Template], ...], str | None]:
        """Return templates that somebody sees, and the name of the last if there are more."""
        return visible_page(self._registry, Template, caller, after, limit)

    def get(self, caller: Principal, name: str) -> Kept[Template]:
        """Return a template.

        Raises:
            NotFound: none that they see.
        """
        return require_visible(self._registry, Template, caller, name)

    def files(self, caller: Principal, name: str) -> Path:
        """Return the folder with a template's files."""
        return self.code(self.get(caller, name).noun)

    def code(self, template: Template) -> Path:
        """Return the folder with the files of a template as it is, or as a model was made from it."""
        return self._folders.path(template.code)

    def add(self, caller: Principal, asked: TemplateSettings, archive: Path) -> Kept[Template]:
        """Keep a new template.

        Raises:
            InvalidInput: with what is wrong with it.
            TooLarge: its code is over a limit.
            Conflict: the name is taken.
            Unavailable: the disk cannot take the code.
        """
        self._check(asked, caller.name)
        with self._folders.draft(archive, partial(_check_files, asked)) as (draft, code), self._lock:
            if self._registry.get(Template, asked.name) is not None:
                raise Conflict(f"there is a template {asked.name!r} already; choose another name, or replace that one")
            noun = Template(
                owner=caller.name,
                code=folder_name(asked.name, 1),
                checksum=code.checksum,
                num_files=code.num_files,
                num_bytes=code.num_bytes,
                elastic_script=find_elastic_file(draft, asked.elastic_file),
                **said_of(TemplateSettings, asked),
            )
            self._folders.keep(draft, noun.code)
            return self._registry.add(noun, at=self._ports.now())

    def replace(
        self, caller: Principal, name: str, asked: TemplateSettings, archive: Path | None, revision: int | None
    ) -> Kept[Template]:
        """Replace a template; without an archive its files stay.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Stale: it is not at `revision` any more.
            InvalidInput, TooLarge, Unavailable: as for `add`.
        """
        before = self.get(caller, name)
        require_owner(caller, before.noun, f"the template {name!r}")
        if asked.name != name:
            message = f"{asked.name!r} is not {name!r}; a template keeps its name, add another one instead"
            raise InvalidInput.at("name", message)
        self._check(asked, before.noun.owner)
        check = partial(_check_files, asked)
        drafting = nullcontext((None, None)) if archive is None else self._folders.draft(archive, check)
        with drafting as (draft, code), self._lock:
            kept = self.get(caller, name)
            files = draft or self._folders.path(kept.noun.code)
            script = find_elastic_file(files, asked.elastic_file)
            noun = replace(kept.noun, elastic_script=script, **said_of(TemplateSettings, asked))
            if draft is None or code is None:
                check(files)
            else:
                folder = folder_name(name, kept.revision + 1)
                noun = replace(
                    noun, code=folder, checksum=code.checksum, num_files=code.num_files, num_bytes=code.num_bytes
                )
                self._folders.keep(draft, folder)
            try:
                # without a revision of the caller the one read here is meant: the new folder is named after the next
                return self._registry.replace(noun, at=self._ports.now(), revision=revision or kept.revision)
            finally:
                self._sweep(name)

    def remove(self, caller: Principal, name: str, revision: int | None) -> None:
        """Forget a template and its files.

        Raises:
            NotFound, Forbidden, Stale: as for `replace`.
            Conflict: models are made from it.
        """
        with self._lock:
            require_owner(caller, self.get(caller, name).noun, f"the template {name!r}")
            models = list(self._models(name))
            if models:
                raise Conflict(f"the template {name!r} is used by {_list_models(caller, models)}; remove those first")
            self._registry.remove(Template, name, revision=revision)
            self._sweep(name)

    def _check(self, asked: TemplateSettings, owner: str) -> None:
        problems = [*problems_of(asked.parameters)]
        if len(set(asked.engines)) != len(asked.engines):
            problems.append(Problem(field="engines", message="one is given twice; give each once"))
        problems += problems_of_shares(asked.shared_with, owner, self._ports.unknown_users)
        if problems:
            raise InvalidInput(*problems)

    def _models(self, template: str) -> Iterator[Model]:
        return (kept.noun for kept in iterate_nouns(self._registry, Model) if kept.noun.template.name == template)

    def _sweep(self, name: str) -> None:
        kept = self._registry.get(Template, name)
        used = {model.template.code for model in self._models(name)}
        self._folders.sweep(name, used | ({kept.noun.code} if kept is not None else set()))

    def release(self, name: str) -> None:
        """Remove the files of former revisions of a template that no model needs any more."""
        with self._lock:
            self._sweep(name)


def _check_files(asked: TemplateSettings, folder: Path) -> None:
    """See that a folder has the files that the engines of a template run.

    Raises:
        InvalidInput: with those that are not there, or are no Python.
    """
    elastic = find_elastic_file(folder, asked.elastic_file)
    names = {"elastic_file": elastic} if elastic and "elastic" in asked.engines else {}
    if not names or len(asked.engines) > 1:
        names["main_file"] = asked.main_file
    found = (problem_of_file(folder, name, field) for field, name in names.items())
    if problems := [problem for problem in found if problem is not None]:
        raise InvalidInput(*problems)


def _list_models(caller: Principal, models: Collection[Model]) -> str:
    """Return models in words: those that somebody sees by name, the others by number."""
    seen = sorted(model.name for model in models if caller.sees(model.owner, model.shared_with))
    words = [f"the model{'s' * (len(seen) > 1)} {', '.join(seen[:_MAX_NAMED])}"] if seen else []
    if more := len(models) - min(len(seen), _MAX_NAMED):
        words.append(f"{more} {'other ' * bool(seen)}model{'s' * (more > 1)} {'of others' * (not seen)}".rstrip())
    return " and ".join(words)
