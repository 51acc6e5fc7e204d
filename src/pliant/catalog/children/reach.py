"""What child processes may reach, and as whom they run: asked for here, made true by what entry hands in.

A child that runs a person's code, or looks where a person says, does so as that person. What all people share is made
by builders, who run nobody's code. The server's own user is for Pliant's own programs over people's data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pliant.catalog.children.child import ChildProgram


@dataclass(frozen=True, slots=True)
class AsPerson:
    """A person, by the name of the account."""

    name: str


@dataclass(frozen=True, slots=True)
class AsBuilder:
    """Whoever makes what all people share."""


@dataclass(frozen=True, slots=True)
class AsServer:
    """The server's own user."""


ChildUser = AsPerson | AsBuilder | AsServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReach:
    """What a child process may reach besides the system, the server's Python and Pliant."""

    user: ChildUser
    home: Path
    """Its `HOME`, its place for temporary files, and its own: made by `ChildIsolation.make_folder`."""
    reads: tuple[str, ...] = ()
    """Files and folders that it may read, list and execute; what is not there is left out."""
    writes: tuple[str, ...] = ()
    """Folders that it may change besides its home."""
    has_network: bool = True
    """False: it makes no sockets of the network."""
    runs_strangers: bool = True
    """False: a program of Pliant's own that executes nothing of anybody's; it may look wherever its user may."""


class ChildIsolation(Protocol):
    """Keeps child processes within their reach. Safe to call from any thread."""

    def confine(self, program: ChildProgram, reach: ChildReach) -> ChildProgram:
        """Return a program as it is run within a reach.

        Its environment is then what every such process gets, with the program's own variables over it: never the
        server's.
        """
        ...

    def make_folder(self, folder: Path, user: ChildUser, files: Mapping[str, bytes] = ...) -> None:
        """Make a folder that belongs to a user, with these files in it.

        Raises:
            OSError: it is there already, or there is no room for it.
        """
        ...
