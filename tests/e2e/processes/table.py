"""The table of processes in docs/security.md: what /proc says of each, without all that differs from run to run."""

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from tests.e2e.processes.look import OpenFile, ProcessFacts, is_within_reach, look_at
from tests.e2e.processes.sockets import TcpSocket, UnixSocket, tcp_sockets, unix_sockets
from tests.e2e.processes.stage import VARIABLE, Stage

from pliant.serve.gateway.gateway_files import KEY_VARIABLE
from pliant.serve.gateway.kernel_socket import KERNEL_SOCKET

ROLES: Final = {
    "server": "the server, `pliant up`",
    "standby": "`pliant up --standby`, while another leads",
    "zygote": "the zygote",
    "inspector": "the inspectors, which look at what dead tasks left, and at what jobs hold on the disk",
    "gateway": "the gateway of endpoints",
    "adviser": "what chooses values for a search",
    "algorithm": "an algorithm of somebody's, which chooses values for a search",
    "elastic": "a task of an elastic training",
    "fixed": "a process of a fixed job",
    "interpreter": "a process with an interpreter of its own",
    "started": "what a script starts",
    "kernel": "a kernel of an endpoint",
    "sidecar": "the sidecar of a shell",
    "shell": "a shell beside a task",
    "supervisor": "the supervisor of a child of the server's",
    "importer": "the import of a data set",
    "look": "the look at an environment",
    "probe": "the try of its interpreter",
    "builder": "the build of an environment",
    "uv": "`uv`, which installs",
    "plugin": "the script of a plug-in",
    "command": "a command of the operator, `pliant logs -f`",
    "restore": "`pliant restore`",
}
"""Every kind of process that Pliant starts, in words."""
WALLS: Final = ", within walls"
MOUNTS: Final = ", without mounts of its own"
SECRET: Final = "the server's secret"
_PATTERNS: Final = (
    (re.compile(r"\bjob-\d+\.\d+\.\w+"), "TASK"),
    (re.compile(r"\bjob-\d+\b"), "JOB"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "ID"),
    (re.compile(r"(\.work-|\.new-)\w+"), r"\g<1>ID"),
    (re.compile(r"(uploads/)\w+"), r"\g<1>ID"),
    (re.compile(r"(pliant\.db)-\w+"), r"\g<1>"),
    (re.compile(r"std(out|err)$"), "std*"),
)
_NOTHING: Final = frozenset({"/dev/null", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[io_uring]"})
"""What everybody may have, and what leads nowhere."""
_SYSTEM: Final = tuple({sys.prefix, sys.base_prefix, "/usr", "/lib", "/etc/ld.so.cache", "/proc"})
PAGE: Final = Path(__file__).parents[3] / "docs" / "security.md"
_BEGIN: Final = "<!-- what is between these lines is written by: python -m tests.e2e.processes -->"
_END: Final = "<!-- until here -->"
_NUM_TRIES: Final = 10
_KERNELS: Final = f"/.{KERNEL_SOCKET}.new"
"""How the socket of kernels was called when it was bound."""
_TITLE: Final = ("process", "user", "of the state folder", "has open", "talks with", "knows")


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One kind of process; a cell is a text."""

    user: str
    sees: str
    opened: str
    talks: str
    knows: str


class Census:
    """All processes of a stage, looked at once."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.renew()
        self.facts = {role: [look_at(pid) for pid in stage.pids[role]] for role in ROLES}
        self._tcp = tcp_sockets()
        self._unix = unix_sockets()
        self._role_of = {one.pid: role for role, found in self.facts.items() for one in found}
        self._holders: dict[str, set[int]] = defaultdict(set)
        for found in self.facts.values():
            for one in found:
                for file in one.files:
                    self._holders[file.link].add(one.pid)
        self._ends = {(each.port, each.peer_port): inode for inode, each in self._tcp.items() if not each.is_listening}

    @property
    def server(self) -> ProcessFacts:
        return self.facts["server"][0]

    def rows(self) -> dict[str, ProcessRow]:
        """Return the row of every kind, by its name."""
        found = {}
        for role, facts in self.facts.items():
            assert facts, f"no {role} was looked at"
            found[ROLES[role]] = ProcessRow(
                user=self._common(role, [self._user(one) for one in facts]),
                sees=self._common(role, [self._sees(one) for one in facts]),
                opened=_joined({word for one in facts for word in self._opened(one)}),
                talks=_joined({word for one in facts for word in self._talks(one)}),
                knows=_joined({word for one in facts for word in self._knows(one)}),
            )
        return found

    def _common(self, role: str, cells: Sequence[str]) -> str:
        assert len(set(cells)) == 1, f"of {role}, some have {cells[0]}, others {set(cells) - {cells[0]}}"
        return cells[0]

    # -- user and walls --------------------------------------------------------------------------------------------

    def _user(self, one: ProcessFacts) -> str:
        person = self.facts["elastic"][0].uid
        if one.uid == self.server.uid:
            user = "the server's"
        else:
            user = "its person's" if one.uid == person else "the builders'"
        lacks = [
            "mounts of its own" if one.mounts == self.server.mounts else "",
            "no capabilities" if one.capabilities else "",
            "no new privileges" if one.has_new_privileges else "",
        ]
        if not any(lacks):
            return f"{user}{WALLS}"
        is_outside = one.mounts == self.server.mounts and one.has_new_privileges
        return user if is_outside else f"{user}, without {_joined([wall for wall in lacks if wall])}"

    def _sees(self, one: ProcessFacts) -> str:
        """Return what of the state folder is mounted for a process, where the rest is covered."""
        home = str(self.stage.home)
        ways = {home, *map(str, self.stage.home.parents)}
        covers = [mount for mount in one.seen if mount.kind == "tmpfs" and mount.path in ways]
        if all(self.server.seen.count(mount) == one.seen.count(mount) for mount in covers):
            return "all" if one.uid == self.server.uid else "what its modes let it"
        inside = [mount for mount in one.seen if mount.path.startswith(f"{home}/")]
        writes = {_shortened(mount.path.removeprefix(f"{home}/")) for mount in inside if not mount.is_read_only}
        reads = {_shortened(mount.path.removeprefix(f"{home}/")) for mount in inside if mount.is_read_only}
        said = [f"{verb} {_code(paths)}" for verb, paths in (("writes", writes), ("reads", reads)) if paths]
        return "; ".join(said) or "nothing"

    def _knows(self, one: ProcessFacts) -> Iterator[str]:
        if is_within_reach(one.pid, self.stage.home / "secret"):
            yield SECRET
        if one.environment.get(VARIABLE) == self.stage.key:
            yield "its variables"
        if any(self.stage.password in value for value in one.environment.values()):
            yield "passwords of indexes"
        if KEY_VARIABLE in one.environment:
            yield "its own key"

    # -- what is open ----------------------------------------------------------------------------------------------

    def _opened(self, one: ProcessFacts) -> Iterator[str]:
        for file in one.files:
            if not file.link.startswith(("socket:", "pipe:")) and (word := self._file(file)):
                yield word

    def _file(self, file: OpenFile) -> str:
        link, home, folder = file.link, str(self.stage.home), str(self.stage.folder)
        if link in _NOTHING or (not file.is_writable and link.startswith((*_SYSTEM, f"{folder}/slow-environment/"))):
            return ""
        if link == str(self.stage.home.parent / "up.log"):
            return "the server's log"
        if link.startswith(f"/dev/shm/pliant-{self.server.uid}/"):
            return "its folder of `/dev/shm`"
        if link.startswith("/memfd:pliant-bodies"):
            return "the memory of large bodies"
        if link == "anon_inode:[pidfd]":
            return "handles of processes"
        if link == f"{folder}/backup":
            return "the backup"
        return f"`{_shortened(link.removeprefix(f'{home}/'))}`"

    def _talks(self, one: ProcessFacts) -> Iterator[str]:
        for file in one.files:
            kind, _, inode = file.link.rstrip("]").partition(":[")
            if kind == "pipe":
                yield from self._through_pipe(one, self._holders[file.link] - {one.pid})
            elif kind == "socket" and int(inode) in self._tcp:
                yield from self._through_tcp(one, self._tcp[int(inode)])
            elif kind == "socket" and int(inode) in self._unix:
                yield from self._through_unix(one, self._unix[int(inode)])
            elif kind == "socket":
                yield "a socket of another kind"

    def _through_pipe(self, one: ProcessFacts, others: set[int]) -> Iterator[str]:
        roles = {self._role_of[pid] for pid in others}
        if "server" in roles or (one.pid == self.server.pid and "supervisor" in roles):
            yield "pipes to its children" if one.pid == self.server.pid else "pipes to the server"
        else:
            yield from (f"a pipe to {ROLES[role].partition(',')[0]}" for role in roles - {"supervisor"})

    def _through_tcp(self, one: ProcessFacts, end: TcpSocket) -> Iterator[str]:
        is_servers = one.pid == self.server.pid and end.port == self.stage.pool.port
        if end.is_listening:
            has_address = one.pid in self._servers or self._role_of[one.pid] == "gateway"
            yield "listens at its address" if has_address else "listens at free ports"
        elif is_servers:
            yield "whoever asks it"
        elif end.peer_port == self.stage.pool.port:
            yield "the server's address"
        elif end.peer_port == self.stage.index.getsockname()[1]:
            yield "the index"
        else:
            other = self._holders[f"socket:[{self._ends.get((end.peer_port, end.port))}]"]
            roles = {self._role_of[pid] for pid in other}
            yield from (
                "tasks of its job" if role == self._role_of[one.pid] else f"a stranger, {role}" for role in roles
            )

    @property
    def _servers(self) -> set[int]:
        return {one.pid for role in ("server", "standby") for one in self.facts[role]}

    def _through_unix(self, one: ProcessFacts, end: UnixSocket) -> Iterator[str]:
        other = None if end.peer is None else self._unix.get(end.peer)
        if end.name.endswith(_KERNELS):
            yield "listens at the socket of kernels" if end.peer is None else "kernels"
        elif other is not None and other.name.endswith(_KERNELS):
            yield "the gateway's socket"
        elif end.name:
            yield f"a socket called {_shortened(end.name)}"
        elif end.peer is not None:
            others = self._holders[f"socket:[{end.peer}]"] - {one.pid}
            for role in {self._role_of[pid] for pid in others}:
                yield f"a socket pair with {ROLES[role].partition(',')[0]}"


def take_census(stage: Stage) -> Census:
    """Look at all processes, again if one has ended meanwhile."""
    for _ in range(_NUM_TRIES):
        with suppress(OSError):
            return Census(stage)
    return Census(stage)


def _shortened(path: str) -> str:
    for pattern, word in _PATTERNS:
        path = pattern.sub(word, path)
    return path


def _code(paths: Collection[str]) -> str:
    """Return paths in Markdown, those of one folder together."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        folders[f"{folder}/" if folder else ""].append(name)
    return ", ".join(
        f"`{folder}{{{','.join(names)}}}`" if folder and len(names) > 1 else ", ".join(f"`{folder}{n}`" for n in names)
        for folder, names in folders.items()
    )


def _joined(words: Collection[str]) -> str:
    """Return words in a row, names of files last."""
    return ", ".join(sorted(words, key=lambda word: (word.startswith("`"), word))) or "–"


def read_rows() -> dict[str, ProcessRow]:
    """Return the rows of the table in the document, by the names of the processes."""
    found: dict[str, ProcessRow] = {}
    for line in _section()[1].strip().splitlines()[2:]:
        names, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found |= dict.fromkeys(names.split("; "), ProcessRow(*cells))
    return found


def write(rows: Mapping[str, ProcessRow]) -> None:
    """Put a table into the document; kinds that differ in their names alone share a line."""
    before, _, after = _section()
    names: dict[ProcessRow, list[str]] = defaultdict(list)
    for name, row in rows.items():
        names[row].append(name)
    head = f"| {' | '.join(_TITLE)} |"
    lines = [head, re.sub(r"[^|]+", "---", head)]
    lines += [f"| {'; '.join(same)} | {' | '.join(astuple(row))} |" for row, same in names.items()]
    PAGE.write_text("\n".join([before, "", *lines, "", after]))


def _section() -> tuple[str, str, str]:
    """Return the document before the table, the table, and what comes after it."""
    before, begin, rest = PAGE.read_text().partition(_BEGIN)
    table, end, after = rest.partition(_END)
    assert begin + end == _BEGIN + _END, f"{PAGE} has no place for the table"
    return before + begin, table, end + after
