"""Brings what a task may reach to this machine, to the same paths, so that nothing else of it has to know.

A folder that its job's tasks write to becomes what the server has, as long as no task of that job lives here: what was
left here by one that was cut off and given up is gone then. Everything else is added to, and changed file by file, so
that tasks that look at it see it whole at any moment.
"""

import logging
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.cluster.mirror.connection import FileConnection, TreeListing
from pliant.cluster.mirror.content import FOLDER, LARGE_BYTES, MARK, ContentFolder
from pliant.cluster.mirror.entries import TreeEntry
from pliant.cluster.mirror.grants import JOBS
from pliant.cluster.mirror.keeper import LIMITS, STRANGE_LIMITS
from pliant.cluster.mirror.messages import FilePart
from pliant.cluster.mirror.neighbours import NeighbourConnection, NeighbourServer
from pliant.core.errors import Conflict, NoSpace, Unavailable
from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove
from pliant.files.untrusted.taking import put_file, put_folder, put_link, remove_file
from pliant.files.untrusted.walking import WalkLimits, walk

_log = logging.getLogger(__name__)

ASK: Final = ".ask-"
"""A file whose name begins so is a task's question to its machine; see `pliant.train.state.copies`."""
_DRAFT: Final = re.compile(r"\.(step-\d{12}\.ckpt|model\.pt)\.\d+(\.\d+)?")
"""Checkpoints and models that are being written."""
_CHECKPOINT: Final = re.compile(r"step-\d{12}\.ckpt")
_NUM_TRIES: Final = 3
"""Of a file that changes while it is fetched."""

Choose = Callable[[tuple[TreeEntry, ...]], tuple[TreeEntry, ...]]
Facts = tuple[int, int, int]
"""Length, time of the last change in nanoseconds, inode: a file with the same ones has not changed."""


def is_passing(name: str) -> bool:
    """Tell whether a file, by its way, is one that comes and goes: a question, or the draft of another."""
    last = name.rpartition("/")[2]
    return last.startswith(ASK) or _DRAFT.fullmatch(last) is not None


def newest_alone(entries: tuple[TreeEntry, ...]) -> tuple[TreeEntry, ...]:
    """Return what is in a folder of checkpoints without those that are not the newest."""
    newest = max((one.name for one in entries if _CHECKPOINT.fullmatch(one.name)), default="")
    return tuple(one for one in entries if one.name == newest or not _CHECKPOINT.fullmatch(one.name))


def facts_of(found: os.stat_result) -> Facts:
    """Return by what a file is known not to have changed."""
    return found.st_size, found.st_mtime_ns, found.st_ino


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file that is here as the server has it."""

    facts: Facts
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A folder, or a file, that is brought."""

    path: str
    place: UntrustedPath
    is_own: bool
    """The server's own: nobody else writes to it."""
    keeps_owner: bool
    """People's data: files are whose they are on the server."""
    is_made_equal: bool = False
    """What the server has not is removed."""


@dataclass(slots=True, kw_only=True)
class Bringer:
    """Knows where what is brought lies here. Safe to use from any thread.

    Args:
        home: the state folder.
        data_root: the folder of people's data; None: there is none.
        shared: folders that this machine sees as the server does.
    """

    home: Path
    data_root: Path | None
    shared: tuple[Path, ...]
    neighbours: NeighbourServer | None = None
    """Hands out to other machines what is here; None: nothing does."""
    _contents: dict[Path, ContentFolder] = field(default_factory=dict, init=False)

    def tree(self, path: str, *, job_id: str) -> Tree | None:
        """Return how a path is brought for a job; None: it is this machine's own, or shared."""
        place = Path(path)
        if ".." in place.parts or any(place.is_relative_to(folder) for folder in self.shared):
            return None
        jobs = self.home / JOBS
        if place.is_relative_to(jobs) and place != jobs:
            job, *inside = place.relative_to(jobs).parts
            root = UntrustedPath(jobs / job, "/".join(inside))
            return Tree(path=path, place=root, is_own=False, keeps_owner=False, is_made_equal=job == job_id)
        if self.data_root is not None and place.is_relative_to(self.data_root):
            root = _below(self.data_root, place)
            return Tree(path=path, place=root, is_own=False, keeps_owner=True, is_made_equal=True)
        if place.is_relative_to(self.home) and place != self.home:
            return Tree(path=path, place=_below(self.home, place), is_own=True, keeps_owner=False, is_made_equal=True)
        return None

    def bring(
        self,
        connection: FileConnection,
        tree: Tree,
        *,
        known: str = "",
        but: Collection[str] = (),
        choose: Choose = tuple,
    ) -> tuple[str, Mapping[str, Placed]]:
        """Make a tree here what it is on the server; return the digest of its listing, and what is here of it now.

        Args:
            connection: has claimed the task that may read it.
            tree: which one.
            known: the digest of the listing when it was brought last, if nobody has changed it here since.
            but: names at its top that are left as they are.
            choose: returns what is wanted of what is there.

        Raises:
            NotFound: the server has nothing there.
            Conflict: something of it cannot be had.
            Unavailable: the connection is lost, or the disk has no room.
            OSError: the disk does not take it.
        """
        for tries_left in reversed(range(_NUM_TRIES)):
            listing = connection.list(tree.path, known=known, but=tuple(but))
            if listing.entries is None:
                return listing.digest, {}
            chosen = listing._replace(entries=choose(listing.entries))
            try:
                return listing.digest, self._bring(connection, tree, chosen, frozenset((*but, FOLDER, MARK)))
            except Conflict:
                if not tries_left or connection.is_lost:
                    raise
        raise AssertionError("the last try returns or raises")

    def _bring(
        self, connection: FileConnection, tree: Tree, listing: TreeListing, but: frozenset[str]
    ) -> dict[str, Placed]:
        entries = listing.entries or ()
        self._make_way(tree, listing)
        limits = LIMITS if tree.is_own or tree.keeps_owner else STRANGE_LIMITS
        here = _files_here(tree.place, but, limits)
        files = [entry for entry in entries if entry.is_file]
        there = {entry.name: entry for entry in entries}
        missing = [entry for entry in files if not _is_here(tree, entry, here)]
        self._fetch(connection, tree, missing, listing)
        if tree.is_made_equal:
            for name in here:
                if is_passing(name) or (name in there and not there[name].is_folder):
                    continue
                if tree.is_own and stat.S_ISSOCK(here[name].st_mode):
                    continue  # somebody of this machine listens there
                with suppress(OSError):
                    remove_file(tree.place / name)
        self._put_folders_and_links(tree, entries)
        for entry in missing:
            self._put(tree, entry)
        for entry in reversed([entry for entry in entries if entry.is_folder]):  # one that nobody may write to at last
            if tree.is_own or tree.keeps_owner:
                put_folder(tree.place / entry.name, mode=_mode(tree, entry), owner=_owner(tree, entry))
        self._offer(connection, tree, listing, missing)
        return {
            entry.name: Placed(facts=facts, digest=entry.says)
            for entry in files
            if (facts := _facts_at(tree.place / entry.name if entry.name else tree.place)) is not None
        }

    def _make_way(self, tree: Tree, listing: TreeListing) -> None:
        """Make the folder itself, and those on the way to it; who cannot pass there on the server cannot here."""
        entries = listing.entries or ()
        is_file = len(entries) == 1 and not entries[0].name and entries[0].is_file
        parts = [part for part in tree.place.inside.split("/") if part]
        tree.place.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        way = UntrustedPath(tree.place.root, "")
        for part in parts[:-1] if is_file else parts:
            way = way / part
            if _stat_at(way) is None:
                put_folder(way, owner=_us() if tree.is_own or tree.keeps_owner or way.inside == part else None)
        if tree.keeps_owner and not tree.place.root.is_relative_to(self.home):
            os.chmod(tree.place.root, listing.way[0].mode & 0o777)
        way = UntrustedPath(tree.place.root, "")
        for part, facts in zip(parts, listing.way[1:], strict=False):  # a file has a name more than there are folders
            way = way / part
            put_folder(way, mode=facts.mode, owner=(facts.uid, facts.gid))

    def _fetch(self, connection: FileConnection, tree: Tree, missing: list[TreeEntry], listing: TreeListing) -> None:
        content = self._content(tree)
        wanted = {entry.says: entry for entry in missing}
        ours = set()
        try:
            ours = set(content.claim(wanted))
            if sum(wanted[digest].num_bytes for digest in ours) >= LARGE_BYTES:
                _take_from_neighbours(listing, content, ours)
            parts, by_name = [], {}
            for digest in ours:
                entry = wanted[digest]
                begun = content.begun(digest)
                parts.append(FilePart(name=entry.name, offset=begun if begun < entry.num_bytes else 0))
                by_name[entry.name] = digest

            def place(part: FilePart, num_bytes: int, pieces: Iterator[bytes]) -> None:
                digest = by_name[part.name]
                content.write(digest, part.offset, num_bytes, pieces)
                ours.discard(digest)
                content.release(digest)

            connection.fetch(tree.path, parts, place)
        finally:
            for digest in ours:
                content.release(digest)
        for digest in wanted:
            if not content.wait(digest):
                raise Conflict(f"{tree.path}/{wanted[digest].name} has not come whole")

    def _put_folders_and_links(self, tree: Tree, entries: tuple[TreeEntry, ...]) -> None:
        for entry in entries:
            if entry.is_folder:
                mode = _mode(tree, entry) | stat.S_IRWXU
                put_folder(tree.place / entry.name, mode=mode, owner=_owner(tree, entry))
            elif entry.is_link and (tree.is_own or tree.keeps_owner):
                put_link(tree.place / entry.name, entry.says, owner=_owner(tree, entry))

    def _put(self, tree: Tree, entry: TreeEntry) -> None:
        content = self._content(tree)
        if not content.has(entry.says):
            raise Conflict(f"{tree.path}/{entry.name} was moved away meanwhile")  # the same large file twice
        draft = content.draft(entry.says, mode=entry.mode, is_own=tree.is_own)
        place = tree.place / entry.name if entry.name else tree.place
        try:
            put_file(draft, place, mode=_mode(tree, entry), mtime_ns=entry.mtime_ns, owner=_owner(tree, entry))
        except IsADirectoryError:
            remove(place)
            put_file(draft, place, mode=_mode(tree, entry), mtime_ns=entry.mtime_ns, owner=_owner(tree, entry))
        finally:
            draft.unlink(missing_ok=True)

    def _offer(self, connection: FileConnection, tree: Tree, listing: TreeListing, fetched: list[TreeEntry]) -> None:
        """Tell the server that other machines may have a large tree of its own from here."""
        if self.neighbours is None or not tree.is_own or sum(one.num_bytes for one in fetched) < LARGE_BYTES:
            return
        digests = frozenset(entry.says for entry in listing.entries or () if entry.is_file)
        self.neighbours.note(listing.digest, listing.key, digests)
        connection.have(listing.digest, self.neighbours.address)

    def find(self, digest: str) -> Path | None:
        """Return the file of a content that is kept here; None: it is not."""
        return next((path for one in list(self._contents.values()) if (path := one.find(digest)) is not None), None)

    def _content(self, tree: Tree) -> ContentFolder:
        root = self.data_root if tree.keeps_owner and self.data_root is not None else self.home
        return self._contents.setdefault(root, ContentFolder(root / FOLDER))

    def is_there(self, tree: Tree) -> bool:
        """Tell whether something is here at the place of a tree."""
        return _stat_at(tree.place) is not None

    def make_folder(self, job: Path, inside: str) -> None:
        """Make a folder of a job, and those on the way to it.

        Raises:
            OSError: something else stands there.
        """
        way = UntrustedPath(job, "")
        for part in inside.split("/"):
            way = way / part
            if _stat_at(way) is None:
                put_folder(way)

    def sweep(self, before: float) -> None:
        """Remove contents that nobody has asked for since then; see `ContentFolder.sweep`."""
        for content in list(self._contents.values()):
            content.sweep(before)


def _take_from_neighbours(listing: TreeListing, content: ContentFolder, wanted: set[str]) -> None:
    """Fetch what other machines have; what is left is the server's to send.

    Raises:
        NoSpace: the disk has no room.
        OSError: the disk does not take it.
    """
    for address in listing.neighbours:
        try:
            with closing(NeighbourConnection(address, listing.digest, listing.key)) as neighbour:
                for digest in list(wanted):
                    begun = content.begun(digest)
                    content.write(digest, begun, *neighbour.take(digest, begun))
                    wanted.discard(digest)
                    content.release(digest)
        except NoSpace:
            raise
        except (Unavailable, Conflict) as error:
            _log.info("%s:%s is asked for no more files of this tree: %s", address.host, address.port, error)


def _below(root: Path, place: Path) -> UntrustedPath:
    return UntrustedPath(root, "/".join(place.relative_to(root).parts))


def _owner(tree: Tree, entry: TreeEntry) -> tuple[int, int] | None:
    """Return whose something is to be; None: as the topmost folder."""
    if tree.keeps_owner:
        return entry.uid, entry.gid
    return (os.geteuid(), _group(tree)) if tree.is_own else None


def _mode(tree: Tree, entry: TreeEntry) -> int:
    """Return with which rights something is to be here: of a tree that a group may read, also for that group."""
    mode = stat.S_IMODE(entry.mode) & 0o777
    if tree.is_own and _group(tree) != os.getegid():
        return mode & 0o700 | (mode & 0o500) >> 3
    return mode


def _group(tree: Tree) -> int:
    """Return the group that may read the server's own here: that of tasks, once one has begun; see `isolation`."""
    found = _stat_at(tree.place)
    return os.getegid() if found is None else found.st_gid


def _us() -> tuple[int, int]:
    return os.geteuid(), os.getegid()


def _files_here(place: UntrustedPath, but: frozenset[str], limits: WalkLimits) -> Mapping[str, os.stat_result]:
    """Return what is here and no folder, by its way from the top."""
    with suppress(OSError), open_folder(place) as top:
        return {found.name: found.facts for found in walk(top, exclude=but, limits=limits)}
    return {}


def _is_here(tree: Tree, entry: TreeEntry, here: Mapping[str, os.stat_result]) -> bool:
    """Tell whether a file is here as the server has it, by length, time and rights."""
    facts = here.get(entry.name) if entry.name else _stat_at(tree.place)
    if facts is None or not stat.S_ISREG(facts.st_mode):
        return False
    is_alike = (facts.st_size, facts.st_mtime_ns) == (entry.num_bytes, entry.mtime_ns)
    return is_alike and stat.S_IMODE(facts.st_mode) & 0o700 == stat.S_IMODE(entry.mode) & 0o700


def _stat_at(place: UntrustedPath) -> os.stat_result | None:
    with suppress(OSError), _open_place(place) as found:
        return os.fstat(found)
    return None


def _facts_at(place: UntrustedPath) -> Facts | None:
    found = _stat_at(place)
    return None if found is None else facts_of(found)


@contextmanager
def _open_place(place: UntrustedPath) -> Iterator[int]:
    root = os.open(place.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = open_beneath(root, place.inside, os.O_PATH)
    finally:
        os.close(root)
    try:
        yield found
    finally:
        os.close(found)
