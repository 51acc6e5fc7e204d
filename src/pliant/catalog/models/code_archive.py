"""Packs what a training runs: the template's files, and beside them what the person entered.

The entries come as `ps.conf`, as IBM has it, and as `parameters.json`.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pliant.catalog.models.code_folders import CodeFolders
from pliant.catalog.models.model import Model
from pliant.core.entered import files_of
from pliant.core.parameter import fill_in
from pliant.files.content_store import CODE, ContentStore
from pliant.files.digest import digest_of_file, digest_of_names
from pliant.files.pack import pack_files, walk
from pliant.files.space import translate_disk_errors

NUM_WORKER: Final = "--numWorker"
"""The option by which IBM's scripts are told the most engines; without it theirs is the default that they were written
with."""


class CodeArchives:
    """Archives of code and parameters, kept under what is in them."""

    def __init__(self, *, folders: CodeFolders, contents: ContentStore, drafts: Path) -> None:
        self._folders = folders
        self._contents = contents
        self._drafts = drafts

    def pack(self, ran: Model) -> str:
        """Keep the archive for a model; return the SHA-256 over the names and digests of its files, in hex.

        The parameters stand in place of files of the template that have their names.

        Raises:
            Unavailable: the disk cannot take it.
        """
        with translate_disk_errors(self._drafts), self._files(ran) as files:
            digest = digest_of_names((name, digest_of_file(path)) for name, path in files.items())
            self._contents.write(digest, CODE, pack_files((path, name) for name, path in sorted(files.items())))
            return digest

    def write(self, ran: Model, to: Path) -> None:
        """Write the archive for a model into a file.

        Raises:
            Unavailable: the disk cannot take it.
        """
        with translate_disk_errors(self._drafts), self._files(ran) as files, to.open("wb") as out:
            out.writelines(pack_files((path, name) for name, path in sorted(files.items())))

    @contextmanager
    def _files(self, ran: Model) -> Iterator[dict[str, Path]]:
        """Yield where the files of an archive are, by their names in it."""
        with _temporary_files(parameter_files(ran), self._drafts) as entered:
            yield {name: path for path, name in walk(self._folders.path(ran.template.code))} | entered

    def args(self, ran: Model) -> tuple[str, ...]:
        """Return what the script of a model is given: the most workers, if it is one of IBM's that asks for them."""
        if not ran.batch_is_per_worker:
            return ()
        script = self._folders.path(ran.template.code) / ran.template.script_of(ran.engine)
        asks = NUM_WORKER.encode() in script.read_bytes()
        return (NUM_WORKER, str(ran.max_workers)) if asks else ()

    def path(self, digest: str) -> Path:
        """Return where the archive is that was kept under a digest."""
        return self._contents.path(digest, CODE)


@contextmanager
def _temporary_files(contents: Mapping[str, bytes], folder: Path) -> Iterator[dict[str, Path]]:
    """Yield the paths of files with these contents; they are removed after."""
    with ExitStack() as stack:
        paths = {}
        for name, content in contents.items():
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder))
            file.write(content)
            file.flush()
            paths[name] = Path(file.name)
        yield paths


def parameter_files(ran: Model) -> Mapping[str, bytes]:
    """Return the files that tell the code what was entered, by name. The same model gives the same bytes."""
    entered = {
        "template": ran.template.name,
        "template_revision": ran.template_revision,
        "framework": ran.template.framework,
        "engine": ran.engine,
        "max_workers": ran.max_workers,
        "dataset": ran.dataset,
        "hyperparameters": asdict(ran.hyperparameters),
        "parameters": fill_in(ran.template.parameters, ran.parameters),
    }
    return files_of(entered)
