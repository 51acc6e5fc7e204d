"""Which folder belongs to which database: jobs are rows in the one and files in the other, and neither is whole alone.

The database keeps a pool's id and folder, and the folder keeps the id. A database without its folder, or a folder
without its database, is refused; a server of another folder on the same machine works in the pool's own. A folder that
is lost may be replaced by an empty one if an object store has copies of its files.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from pliant.core.errors import Conflict
from pliant.core.registry import Kept, Registry
from pliant.entry.server.database import display_url, is_server
from pliant.entry.server.settings import ServerSettings
from pliant.files.folder import write_whole

FILE: Final = "pool.json"
_NAME: Final = "pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a database knows of its folder."""

    KIND: ClassVar[str] = "pool"

    name: str = _NAME
    owner: str = ""
    id: str
    home: str
    """The folder's whole path."""


def folder_of(
    registry: Registry, settings: ServerSettings, now: float, has_copies: Callable[[str], bool] = lambda _pool: False
) -> Path:
    """Return the folder of the pool whose database this is; the server's own becomes it if there is none.

    Args:
        registry: of the database.
        settings: of the server.
        now: seconds since the epoch.
        has_copies: whether what the jobs of this pool wrote is also elsewhere, from where it can be brought back.

    Raises:
        Conflict: the folder belongs to another database, or the database to a folder that is not here.
    """
    own, here = settings.home, _id_in(settings.home)
    kept = registry.get(Pool, _NAME)
    if kept is None:
        if here is not None:
            raise _other_database(own, settings)
        registry.add(made := Pool(id=secrets.token_hex(8), home=str(own)), at=now)
        _note(own, made.id, settings)
        return own
    if here == kept.noun.id or (here is None and not is_server(settings.database)):
        _note_move(registry, kept, own, now)
        _note(own, kept.noun.id, settings)
        return own
    if here is not None:
        raise _other_database(own, settings)
    theirs = Path(kept.noun.home)
    if _id_in(theirs) != kept.noun.id:
        if has_copies(kept.noun.id):
            _note_move(registry, kept, own, now)
            _note(own, kept.noun.id, settings)
            return own
        raise Conflict(
            f"the files of the jobs in {display_url(settings.database)} are in {theirs}, which is not here; give "
            f"--home with that folder, wherever it is now, or --results-to where its results were copied to"
        )
    return theirs


def id_of(registry: Registry) -> str:
    """Return the id of the pool whose database this is; empty if it has none yet."""
    kept = registry.get(Pool, _NAME)
    return "" if kept is None else kept.noun.id


def _note_move(registry: Registry, kept: Kept[Pool], own: Path, now: float) -> None:
    if kept.noun.home != str(own):
        registry.replace(Pool(id=kept.noun.id, home=str(own)), at=now)


def _other_database(own: Path, settings: ServerSettings) -> Conflict:
    return Conflict(
        f"the jobs of {own} are in another database ({_describe_database(own)}), not in "
        f"{display_url(settings.database)}; give that one, or another --home (remove {own / FILE} only if they shall "
        f"be forgotten)"
    )


def _note(own: Path, pool_id: str, settings: ServerSettings) -> None:
    text = json.dumps({"id": pool_id, "database": display_url(settings.database)})
    if not (own / FILE).exists() or (own / FILE).read_text() != text:
        write_whole(own / FILE, text.encode())


def _id_in(folder: Path) -> str | None:
    found = _read(folder)
    return found.get("id")


def _describe_database(folder: Path) -> str:
    return _read(folder).get("database", "it does not say which")


def _read(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
