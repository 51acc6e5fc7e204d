"""Packs what a training runs: the template's files, and the parameters beside them."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pliant.catalog.models.code_folders import CodeFolders
from pliant.catalog.models.kept_files import CODE, KeptFiles
from pliant.catalog.models.model import Model
from pliant.catalog.models.parameter_file import parameter_files
from pliant.files.digest import digest_of_file, digest_of_names
from pliant.files.pack import pack_files, walk
from pliant.files.space import told_of_disk


class Bundle:
    """Archives of code and parameters, kept under what is in them."""

    def __init__(self, *, folders: CodeFolders, kept_files: KeptFiles, drafts: Path) -> None:
        self._folders = folders
        self._kept_files = kept_files
        self._drafts = drafts

    def packed(self, ran: Model) -> str:
        """Keep the archive for a model; return the SHA-256 over the names and digests of its files, in hex.

        The parameters stand in place of files of the template that have their names.

        Raises:
            Unavailable: the disk cannot take it.
        """
        with told_of_disk(self._drafts), _written(parameter_files(ran), self._drafts) as written:
            files = {name: path for path, name in walk(self._folders.path(ran.template.code))}
            files.update(written)
            digest = digest_of_names((name, digest_of_file(path)) for name, path in files.items())
            self._kept_files.write(digest, CODE, pack_files((path, name) for name, path in sorted(files.items())))
            return digest

    def path(self, digest: str) -> Path:
        """Return where the archive is that was kept under a digest."""
        return self._kept_files.path(digest, CODE)


@contextmanager
def _written(contents: Mapping[str, bytes], folder: Path) -> Iterator[dict[str, Path]]:
    """Yield the paths of files with these contents; they are removed after."""
    with ExitStack() as stack:
        paths = {}
        for name, content in contents.items():
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder))
            file.write(content)
            file.flush()
            paths[name] = Path(file.name)
        yield paths
