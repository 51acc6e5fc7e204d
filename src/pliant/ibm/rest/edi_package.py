"""The packages of models that IBM's clients send: an archive of `model.json`, `kernel.py`, `README.md` and the model.

The files lie in the archive itself or in one folder that holds all of it, as `tar cf pingpong.tar pingpong/` makes it.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.files.archive import MODEL_LIMITS, read_texts, unpack
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest.code_files import archive_of
from pliant.ibm.rest.translate.plain_json import require_plain

DESCRIPTION: Final = "model.json"
README: Final = "README.md"
MAX_TEXT_BYTES: Final = 64 << 10
"""Of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPackage:
    """What a package says of itself."""

    description: Mapping[str, Any]
    """`model.json`."""
    readme: str
    folder: str
    """That holds all of it in the archive; empty if nothing does."""

    @property
    def name(self) -> str:
        return str(self.description["name"])

    @property
    def kernel_path(self) -> str | None:
        """The file that is run; None: it is found by its name."""
        path = self.description.get("kernel_path")
        return path if isinstance(path, str) and path else None


def read_package(archive: Path) -> ModelPackage:
    """Return what a package says of itself.

    Raises:
        InvalidInput, TooLarge: it is no archive, or has no `model.json` that names the model.
    """
    texts = read_texts(archive, (DESCRIPTION, README), max_bytes=MAX_TEXT_BYTES, limits=MODEL_LIMITS, field="body")
    places = sorted((path.removesuffix(DESCRIPTION) for path in texts if path.endswith(DESCRIPTION)), key=len)
    if not places:
        message = f"the archive holds no {DESCRIPTION}; pack the folder that has it, with kernel.py and {README}"
        raise InvalidInput.at("body", message)
    if places[0] and len(places) > 1:
        raise InvalidInput.at("body", f"several folders hold a {DESCRIPTION}: {', '.join(places[:5])}; pack one model")
    readme = texts.get(f"{places[0]}{README}", b"").decode("utf-8", "replace").replace("\0", "")
    description = _parse(texts[f"{places[0]}{DESCRIPTION}"])
    return ModelPackage(description=description, readme=readme, folder=places[0].rstrip("/"))


@contextmanager
def flattened(archive: Path, package: ModelPackage, drafts: Path) -> Iterator[Path]:
    """Yield a package whose files lie in the archive itself.

    Raises:
        InvalidInput, TooLarge: it cannot be unpacked.
        NoSpace, Unavailable: the disk does not take it.
    """
    if not package.folder:
        yield archive
        return
    with translate_disk_errors(drafts), tempfile.TemporaryDirectory(dir=drafts) as draft:
        whole = Path(draft) / "whole"
        whole.mkdir()
        unpack(archive, whole, limits=MODEL_LIMITS, field="body")
        with archive_of(whole / package.folder, Path(draft)) as flat:
            yield flat


def _parse(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at(DESCRIPTION, f"it is no JSON ({error}); mend it") from error
    if not isinstance(found, dict) or not isinstance(found.get("name"), str) or not found["name"]:
        raise InvalidInput.at(
            DESCRIPTION, 'it does not name the model; write {"name": …, "kernel_path": "kernel.py", …}'
        )
    require_plain(found, DESCRIPTION)
    return found
