"""The server's end of files: what a machine may read of the state folder, and what it may put there.

A machine reads what its own orders name, and no more: each order has a ticket, which only the server can make, so that
the next server knows it, too. It writes to the folders of a job as long as a task of that job lives there as far as
the server knows: who was cut off, taken for ended and begun elsewhere, changes nothing any more.

Three kinds of paths are read in three ways. What is the server's own (environments, data sets) is read as it is. What
tasks can write to (folders of jobs) is opened as a stranger's: no link, no second name, no other owner. People's data
keep owner, mode and links, so that whoever cannot read them here cannot read them there either.

Knows no connection; its methods wait for the disk, and are called in threads.
"""

import errno
import hashlib
import hmac
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.cluster.mirror.entries import TreeEntry, check_name, pack_listing
from pliant.cluster.mirror.grants import ADDRESS, JOBS, WRITTEN, FileGrant, paths_of, ticket_of
from pliant.cluster.mirror.holders import TreeHolders
from pliant.cluster.mirror.messages import CHUNK_BYTES, Claim, IndexOptions, ListTree, Put, WayFolder
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder
from pliant.files.space import check_room, translate_disk_errors
from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import OpenFile, open_below, refusal
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.taking import append_at, put_file, remove_file
from pliant.files.untrusted.walking import FoundEntry, WalkLimits, walk
from pliant.isolation.opening import open_plain

ARRIVING: Final = ".arriving"
"""In the folder of a job: files on their way in."""
LIMITS: Final = WalkLimits(max_entries=5_000_000, max_name_bytes=1 << 30)
"""Of a tree that is brought."""
STRANGE_LIMITS: Final = WalkLimits(max_entries=500_000, max_name_bytes=64 << 20)
"""Of one that tasks can write to: what is more stays where it is."""
_MAX_DIGESTS: Final = 500_000
_DURABLE_BYTES: Final = 1 << 20
"""A file that is so large, such as a checkpoint, lasts through a loss of power as soon as it is taken."""
_GIVEN_UP_S: Final = 86_400.0
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY

_Identity = tuple[int, int, int, int, int]


@dataclass(slots=True, kw_only=True)
class FileKeeper:
    """Hands out and takes in. Safe to use from any thread."""

    home: Path
    """The state folder."""
    data_root: Path
    secret: bytes
    job_of: Callable[[NodeId, TaskId], str | None]
    """Tells whose task it is that lives on a machine, as far as is known; None: nobody's."""
    index: Callable[[], IndexOptions] = IndexOptions
    """Returns how environments are built; it may raise OSError."""
    holders: TreeHolders = field(init=False)
    """Which machines have which trees."""
    _digests: dict[_Identity, str] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _reading: dict[_Identity, threading.Event] = field(default_factory=dict, init=False)
    """What is being read just now."""

    def __post_init__(self) -> None:
        self.holders = TreeHolders(secret=self.secret)

    def ticket(self, order: StartOrder) -> str:
        """Return the ticket of an order."""
        return ticket_of(self.secret, order.node_id, order.task_id, paths_of(order))

    def grant(self, node_id: NodeId, claim: Claim) -> FileGrant:
        """Return what a machine may do for a task.

        Raises:
            Forbidden: the ticket is not the server's.
            NotFound: no such task lives there.
        """
        task_id = TaskId(claim.task_id)
        job_id = self.job_of(node_id, task_id)
        if job_id is None:
            raise NotFound(f"no task {claim.task_id!r:.80} lives on {node_id}, as far as the server knows")
        grant = FileGrant(node_id=node_id, task_id=task_id, job_id=job_id)
        if not claim.ticket:
            return grant
        right = ticket_of(self.secret, node_id, claim.task_id, claim.paths)
        if not hmac.compare_digest(claim.ticket, right):
            raise Forbidden(f"the ticket of task {claim.task_id!r:.80} is none of this server's")
        return FileGrant(
            node_id=node_id,
            task_id=task_id,
            job_id=job_id,
            paths=frozenset(claim.paths),
        )

    def index_options(self, grant: FileGrant | None) -> IndexOptions:
        """Return how environments are built, to a machine whose order names one.

        Raises:
            Forbidden: its order names none.
            Conflict: it is not known.
        """
        if grant is None or not grant.environments(self.home):
            raise Forbidden("this task's order names no environment that is built")
        try:
            return self.index()
        except (OSError, ValueError) as error:
            raise Conflict(f"the server cannot read where packages come from: {error}") from error

    # what is read

    def listing(self, grant: FileGrant | None, asked: ListTree) -> tuple[str, bytes]:
        """Return the digest of what is in a folder, and the listing; nothing of it if the machine has it.

        Raises:
            Forbidden: that path is not the machine's to read.
            NotFound: it is not there.
        """
        with self._open(grant, asked.path) as top:
            digest, content = pack_listing(self._entries(top, frozenset(asked.but)))
        return digest, b"" if digest == asked.known else content

    def way_to(self, path: str) -> tuple[WayFolder, ...]:
        """Return who may pass through the folders on the way to people's data, from the data root on; see `WayFolder`.

        Raises:
            NotFound: it is not there.
        """
        place = Path(path)
        if not place.is_relative_to(self.data_root) or place.is_relative_to(self.home / JOBS):
            return ()
        way = [place, *(parent for parent in place.parents if parent.is_relative_to(self.data_root))]
        try:
            found = [folder.lstat() for folder in reversed(way)]
        except OSError as error:
            raise NotFound(f"{path!r:.200} cannot be read on the server: {error.strerror}") from error
        return tuple(
            WayFolder(mode=stat.S_IMODE(facts.st_mode), uid=facts.st_uid, gid=facts.st_gid)
            for facts in found
            if stat.S_ISDIR(facts.st_mode)
        )

    def read(self, grant: FileGrant | None, path: str, name: str) -> OpenFile:
        """Return a file that is open; who calls this closes it.

        Raises:
            Forbidden, NotFound: as of `listing`.
            OSError: it cannot be read.
        """
        with self._open(grant, path) as top:
            return top.open(check_name(name) if name else "")

    @contextmanager
    def _open(self, grant: FileGrant | None, path: str) -> Iterator["_Top"]:
        try:
            top = self._top(grant, path)
        except OSError as error:
            raise NotFound(f"{path!r:.200} cannot be read on the server: {error.strerror or error}") from error
        try:
            yield top
        finally:
            top.close()

    def _top(self, grant: FileGrant | None, path: str) -> "_Top":
        place = Path(path)
        if ".." in place.parts or not place.is_absolute():
            raise Forbidden(f"{path!r:.200} is no whole path")
        if path == str(self.home / ADDRESS):
            return _Top(os.open(place, os.O_PATH | os.O_CLOEXEC))
        jobs = self.home / JOBS
        if grant is None or not grant.covers(place, self.home):
            raise Forbidden(f"{path!r:.200} was not named by this task's order")
        if place.is_relative_to(jobs):
            job, *inside = place.relative_to(jobs).parts
            return _stranger(jobs / job, "/".join(inside))
        if place.is_relative_to(self.data_root):
            real = os.path.realpath(self.data_root) / place.relative_to(self.data_root)
            return _Top(open_plain(str(real)), keeps_owner=True)
        if place.is_relative_to(self.home):
            return _Top(os.open(place, os.O_PATH | os.O_CLOEXEC))
        raise Forbidden(f"{path!r:.200} lies outside of the state folder and of the data root: machines have their own")

    def _entries(self, top: "_Top", but: Collection[str]) -> Iterator[TreeEntry]:
        for found in top.walk(frozenset(but)):
            facts, says = found.facts, ""
            if stat.S_ISREG(facts.st_mode):
                try:
                    file = top.open(found.name)
                except OSError:
                    continue  # somebody else's, or removed meanwhile: no task could use it
                try:
                    facts = file.facts
                    says = self._digest(file)
                finally:
                    file.close()
            elif stat.S_ISLNK(facts.st_mode):
                try:
                    says = top.link(found.name)
                except OSError:
                    continue
            elif not stat.S_ISDIR(facts.st_mode):
                continue
            yield TreeEntry(
                name=found.name,
                mode=facts.st_mode,
                num_bytes=facts.st_size if stat.S_ISREG(facts.st_mode) else 0,
                mtime_ns=0 if stat.S_ISDIR(facts.st_mode) else facts.st_mtime_ns,
                says=says,
                uid=facts.st_uid if top.keeps_owner else 0,
                gid=facts.st_gid if top.keeps_owner else 0,
            )

    def _digest(self, file: OpenFile) -> str:
        facts = file.facts
        identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        while (known := self._digests.get(identity)) is None:
            with self._lock:
                reading = self._reading.get(identity)
                if reading is None:
                    mine = self._reading[identity] = threading.Event()
            if reading is not None:  # many machines ask for the same at once
                reading.wait()
                continue
            try:
                known = digest_of_open(file.descriptor, file.num_bytes)
                with self._lock:
                    if len(self._digests) >= _MAX_DIGESTS:
                        self._digests.clear()
                    self._digests[identity] = known
                return known
            finally:
                with self._lock:
                    del self._reading[identity]
                mine.set()
        return known

    # what is written

    def want(self, grant: FileGrant, put: Put) -> int | None:
        """Return from which offset on a file is wanted; None: it is there already.

        Raises:
            Forbidden: that is no place of the job's.
            NotFound: the task, or its job, is gone.
            NoSpace: the disk has no room for it.
            Unavailable: the disk does not take it.
        """
        place = self._place(grant, put.path, put.name)
        if len(put.digest) != hashlib.sha256().digest_size * 2 or not put.digest.isalnum() or put.num_bytes < 0:
            raise InvalidInput.at("digest", "it is no SHA-256 in hex")
        with suppress(OSError), _open_written(place) as there:
            if there.num_bytes == put.num_bytes and self._digest(there) == put.digest:
                return None
        with translate_disk_errors(place.root):
            draft = _draft(place.root, put.digest)
            _remove_old(draft.parent)
            begun = draft.stat().st_size if draft.exists() else 0
            if begun > put.num_bytes:
                draft.unlink()
                begun = 0
            check_room(place.root, put.num_bytes - begun)
        return begun

    def write(self, grant: FileGrant, put: Put, offset: int, content: bytes) -> None:
        """Write a piece of a file that is wanted.

        Raises:
            NotFound: the task, or its job, is gone.
            Unavailable: the disk does not take it.
        """
        place = self._place(grant, put.path, put.name)
        with translate_disk_errors(place.root):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(_draft(place.root, put.digest), flags, 0o600)
            try:
                os.pwrite(file, content, offset)
            finally:
                os.close(file)

    def finish(self, grant: FileGrant, put: Put) -> None:
        """Put a file in its place, now that all of it is here.

        Raises:
            InvalidInput: it is not what was said.
            NotFound: the task, or its job, is gone.
            Unavailable: the disk does not take it.
        """
        place = self._place(grant, put.path, put.name)
        draft = _draft(place.root, put.digest)
        with translate_disk_errors(place.root):
            file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)  # it may be empty
            try:
                if os.fstat(file).st_size != put.num_bytes or digest_of_open(file, put.num_bytes) != put.digest:
                    draft.unlink()
                    raise InvalidInput.at(put.name, "it arrived as something else than was said; send it again")
                if put.num_bytes >= _DURABLE_BYTES:
                    os.fsync(file)
            finally:
                os.close(file)
            put_file(draft, place, mode=put.mode, mtime_ns=put.mtime_ns)

    def append(self, grant: FileGrant, path: str, name: str, offset: int, content: bytes) -> int:
        """Write to a log from an offset on; return how long it is then.

        Raises:
            Forbidden, NotFound, Unavailable: as of `want`.
        """
        place = self._place(grant, path, name)
        with translate_disk_errors(place.root):
            check_room(place.root, len(content))
            return append_at(place, offset, content)

    def remove(self, grant: FileGrant, path: str, name: str) -> None:
        """Remove what the task has removed.

        Raises:
            Forbidden, NotFound, Unavailable: as of `want`.
        """
        place = self._place(grant, path, name)
        with translate_disk_errors(place.root):
            remove_file(place)

    def _place(self, grant: FileGrant, path: str, name: str) -> UntrustedPath:
        job = self.home / JOBS / grant.job_id
        folders = {str(job / folder): folder for folder in WRITTEN}
        if path not in folders:
            raise Forbidden(f"{path!r:.200} is no folder of {grant.job_id} that its tasks write to")
        if self.job_of(grant.node_id, grant.task_id) != grant.job_id or not job.is_dir():
            raise NotFound(
                f"task {grant.task_id} does not live on {grant.node_id} any more, as far as the server knows"
            )
        try:
            return UntrustedPath(job, f"{folders[path]}/{check_name(name)}")
        except ValueError as error:
            raise InvalidInput.at("name", str(error)) from error


@contextmanager
def _open_written(place: UntrustedPath) -> Iterator[OpenFile]:
    root = os.open(place.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        file = open_below(root, place.inside, owner=None)
    finally:
        os.close(root)
    try:
        yield file
    finally:
        file.close()


def _draft(job: Path, digest: str) -> Path:
    folder = job / ARRIVING
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / digest


class _Top:
    """A folder or a file that is open, and how what is below it is opened."""

    def __init__(self, place: int, *, is_strange: bool = False, owner: int | None = None, keeps_owner: bool = False):
        self._place = place
        self._is_strange = is_strange
        self._owner = owner
        self.keeps_owner = keeps_owner
        self._facts = os.fstat(place)
        if not stat.S_ISDIR(self._facts.st_mode) and not stat.S_ISREG(self._facts.st_mode):
            os.close(place)
            raise OSError(errno.ENOENT, "it is neither a folder nor a file")

    def close(self) -> None:
        os.close(self._place)

    def walk(self, but: frozenset[str]) -> Iterator[FoundEntry]:
        if stat.S_ISDIR(self._facts.st_mode):
            refuse, limits = (_pass_over, STRANGE_LIMITS) if self._is_strange else (_refuse, LIMITS)
            return walk(self._place, exclude=but, with_folders=True, limits=limits, leave_out=refuse)
        return iter([FoundEntry("", self._facts)])

    def open(self, name: str) -> OpenFile:
        """Return a plain file."""
        if self._is_strange and name:
            return open_below(self._place, name, owner=self._owner)
        if not name and self._is_strange and (why := refusal(self._facts, self._owner)):
            raise OSError(why)
        if name:
            file = open_beneath(self._place, name, _READ)
        else:
            file = os.open(f"/proc/self/fd/{self._place}", _READ | os.O_CLOEXEC)
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            os.close(file)
            raise OSError("it is no plain file")
        return OpenFile(file, facts)

    def link(self, name: str) -> str:
        """Return where a link leads."""
        above, _, last = name.rpartition("/")
        folder = open_beneath(self._place, above, os.O_PATH | os.O_DIRECTORY)
        try:
            return os.readlink(last, dir_fd=folder)
        finally:
            os.close(folder)


def _remove_old(folder: Path) -> None:
    """Remove what was on its way in and has not come for long."""
    for draft in os.scandir(folder):
        with suppress(OSError):
            if draft.stat().st_mtime < time.time() - _GIVEN_UP_S:
                os.unlink(draft)


def _pass_over(name: str, why: str) -> None:
    """Leave something out of what tasks have written that is too much."""


def _refuse(name: str, why: str) -> None:
    raise Conflict(f"{name} cannot be copied to other machines: {why}")


def _stranger(job: Path, inside: str) -> _Top:
    """Return a place in a folder of a job, which its tasks can write to."""
    root = os.open(job, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        top = open_beneath(root, inside.partition("/")[0], os.O_PATH)
        try:
            owner = os.fstat(top).st_uid
        finally:
            os.close(top)
        place = open_beneath(root, inside, os.O_PATH)
    finally:
        os.close(root)
    return _Top(place, is_strange=True, owner=None if owner == os.geteuid() else owner)


def digest_of_open(file: int, num_bytes: int) -> str:
    """Return the SHA-256 of a file that is open, of so many bytes at most, in hex."""
    digest, at = hashlib.sha256(), 0
    while chunk := os.pread(file, min(CHUNK_BYTES, num_bytes - at), at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest()
