"""Whether a machine sees the files of its server, and what brings them if it does not."""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from pliant.cluster.link.dial import ServerHost
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import NodeRules
from pliant.cluster.link.versions import versions
from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.building import EnvironmentMaker
from pliant.cluster.mirror.connection import FileServer
from pliant.cluster.mirror.content import MARK
from pliant.cluster.mirror.mirror import Mirror
from pliant.cluster.mirror.neighbours import NeighbourServer
from pliant.core.errors import Conflict, Unavailable
from pliant.entry.own_machine import AGENTS_FILE, shared_probe
from pliant.files.folder import write_whole

_log = logging.getLogger(__name__)


def read_announced(path: Path) -> dict[str, object]:
    """Return what a server says of itself in a file; nothing, if that cannot be read."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def open_files(
    rules: NodeRules,
    servers: Callable[[], Sequence[ServerHost]],
    identity: NodeIdentity,
    state_dir: Path,
    *,
    host: str,
    maker: EnvironmentMaker | None = None,
) -> Mirror | None:
    """Return what brings and sends files of jobs; None: this machine sees the server's.

    Args:
        rules: of the server.
        servers: where it may be.
        identity: who this machine is.
        state_dir: the agent's own folder.
        host: where other machines reach this one.
        maker: builds environments; None: the server's work here.

    Raises:
        Unavailable: it does not see a folder that all machines must see.
        Conflict: something else lies where its copies are to be.
    """
    home = Path(rules.home)
    shared = tuple(map(Path, rules.shared))
    for folder in shared:
        probe = shared_probe(folder, rules.probe)
        if read_announced(probe).get("probe") != rules.probe:
            raise Unavailable(
                f"{identity.name} does not see the folder {folder} of its pool: {probe} is not there, or is another "
                f"one's. All machines of this pool must have it at that path (pliant up --shared); mount it"
            )
    if _sees(home, rules) or any(home.is_relative_to(folder) for folder in shared):
        return None
    if not _take(home, rules, identity.name):
        raise Conflict(
            f"{identity.name} does not see the server's state folder, and cannot copy files to {home}: something else "
            f"is there. Mount the file system that the server has there, move that folder away, or start the server "
            f"with another --home"
        )
    _log.info("%s does not see the server's state folder: files of jobs are copied to %s and back", identity.name, home)
    data_root = Path(rules.data_root or home / "data")
    if not data_root.is_relative_to(home) and not _take(data_root, rules, identity.name):
        _log.info("%s has data of its own in %s: nothing is copied there", identity.name, data_root)
        shared = (*shared, data_root)
    bringer = Bringer(home=home, data_root=data_root, shared=shared)
    bringer.neighbours = NeighbourServer(host, state_dir, bringer.find)
    server = FileServer(servers=servers, identity=identity, versions=versions())
    return Mirror(server, bringer, state_dir, maker, keeps_address=rules.gateway is not None)


def _sees(home: Path, rules: NodeRules) -> bool:
    """Tell whether a state folder is the server's own, and no copy."""
    is_copy = read_announced(home / MARK).get("probe") == rules.probe
    return not is_copy and read_announced(home / AGENTS_FILE).get("probe") == rules.probe


def _take(folder: Path, rules: NodeRules, name: str) -> bool:
    """Make a folder for copies, or find that it is one; tell whether it may be written to.

    Raises:
        Unavailable: it cannot be made.
    """
    mark = folder / MARK
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if read_announced(mark).get("probe") == rules.probe:
            return True
        if any(folder.iterdir()):
            return False
        folder.chmod(0o700 if folder == Path(rules.home) else 0o755)
        write_whole(mark, json.dumps({"probe": rules.probe}).encode())
    except OSError as error:
        raise Unavailable(
            f"{name} does not see the server's state folder, and cannot make {folder} for copies: {error.strerror}; "
            f"run the agent as a user who may, mount the server's, or start the server with another --home"
        ) from error
    return True
