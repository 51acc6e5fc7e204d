"""What a machine and its server say to each other about files. Shapes only, no logic.

A connection for files is one to the port that agents dial, and begins with `Carry` and `Carrying`. From then on the
machine asks and the server answers, one after the other. Whatever has a length in bytes is followed by so many.

    machine                                      server
    Claim(task_id="job-1.1", reads=…)    ──────▶
                                         ◀──────  Granted()
    ListTree(path="/…/jobs/job-1/code")  ──────▶
                                         ◀──────  Listing(num_bytes=812), and its bytes
    Fetch(path=…, files=(train.py, …))   ──────▶
                                         ◀──────  FileContent(num_bytes=4096), and its bytes, for each of them
    Put(path=…, name="model.pt", …)      ──────▶
                                         ◀──────  SendFrom(offset=0)
    its bytes                            ──────▶
                                         ◀──────  Taken()
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.json_lines import by_kind

MAX_REQUEST_BYTES: Final = 1 << 20
"""Of a line of either end."""
MAX_FETCHED: Final = 256
"""Files that are asked for at once."""
MAX_LISTING_BYTES: Final = 256 << 20
CHUNK_BYTES: Final = 1 << 18
"""Of a file at a time: a larger piece is copied more often on its way through TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What follows is for this task, which was ordered here.

    As long as it lives, as far as the server knows, what it wrote is taken, and the folders of its job may be read.
    What else it may read is signed by the server.
    """

    task_id: str
    paths: tuple[str, ...] = ()
    """What the order names."""
    ticket: str = ""
    """By which the server knows its own order; empty: no more than the folders of the job is asked for."""
    kind: Literal["claim"] = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTree:
    """What is in a folder, or what a file is."""

    path: str
    known: str = ""
    """The digest of the listing that the machine has."""
    but: tuple[str, ...] = ()
    """Names at the top that are not wanted."""
    kind: Literal["list"] = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file, from an offset on."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """These files of a folder."""

    path: str
    files: tuple[FilePart, ...]
    kind: Literal["fetch"] = "fetch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Take a file that the task has written."""

    path: str
    """The folder of its job: code, result or state."""
    name: str
    num_bytes: int
    digest: str
    """SHA-256 in hex."""
    mode: int
    mtime_ns: int
    kind: Literal["put"] = "put"


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Write these bytes to a log, from an offset on; so many follow."""

    path: str
    name: str
    offset: int
    num_bytes: int
    kind: Literal["append"] = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """The task has removed this file, which this machine had as the server has it."""

    path: str
    name: str
    kind: Literal["remove"] = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourAddress:
    """Where another machine hands out what it has."""

    host: str
    port: int
    pin: str
    """Of its certificate, which it makes anew whenever it begins: its SHA-256 in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Have:
    """I have all that this listing names, and hand it out to others."""

    digest: str
    address: NeighbourAddress
    kind: Literal["have"] = "have"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeFrom:
    """To another machine: this file, which is in a tree that I may read, from an offset on."""

    tree: str
    """The digest of its listing."""
    key: str = field(repr=False)
    """The tree's, which the server has told to whom may read it."""
    digest: str
    offset: int = 0
    kind: Literal["take-from"] = "take-from"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskIndex:
    """How do you build environments? This machine has to build one itself that my order names."""

    kind: Literal["ask-index"] = "ask-index"


# from the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The claim holds."""

    kind: Literal["granted"] = "granted"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayFolder:
    """Who may pass through a folder of people's data."""

    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is there; see `entries`."""

    digest: str
    num_bytes: int
    """0: it is the listing that the machine has."""
    key: str = field(default="", repr=False)
    """By which machines that have it know each other."""
    neighbours: tuple[NeighbourAddress, ...] = ()
    """Who has it."""
    way: tuple[WayFolder, ...] = ()
    """Of people's data: the folders from the data root to what is listed, and that, if it is one."""
    kind: Literal["listing"] = "listing"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file, from the offset on that was asked for."""

    num_bytes: int
    why_not: str = ""
    """Why it is not to be had, in words."""
    kind: Literal["content"] = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFrom:
    """Send the file from this offset on; all that comes before is here. None: all of it is."""

    offset: int | None
    kind: Literal["wanted"] = "wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """How the server builds environments."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of uv and pip: where packages come from. They may hold passwords, as the files may."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What is in them, by the names that they have in the builder's home folder."""
    uid: int | None = None
    """Whom those run as who build what people share; None: as whoever runs the agent."""
    kind: Literal["index-options"] = "index-options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """It is done."""

    num_bytes: int = 0
    """How long the file is now."""
    kind: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDone:
    """No, and the connection goes on."""

    reason: str
    is_gone: bool = False
    """Nobody wants what this task has written any more."""
    kind: Literal["not-done"] = "not-done"


Request = Claim | ListTree | Fetch | Put | Append | Remove | Have | AskIndex
Answer = Granted | Listing | FileContent | SendFrom | IndexOptions | Taken | NotDone

REQUESTS: Final[Mapping[str, type[Request]]] = by_kind((Claim, ListTree, Fetch, Put, Append, Remove, Have, AskIndex))
FROM_NEIGHBOURS: Final[Mapping[str, type[TakeFrom]]] = by_kind((TakeFrom,))
ANSWERS: Final[Mapping[str, type[Answer]]] = by_kind(
    (Granted, Listing, FileContent, SendFrom, IndexOptions, Taken, NotDone)
)
