"""Child processes of a server: each within the walls that this machine has, as the user whose it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, assert_never

from pliant.catalog.children.child import ChildProgram
from pliant.catalog.children.reach import AsBuilder, AsPerson, AsServer, ChildReach, ChildUser
from pliant.core.confinement import Confinement, RunAs
from pliant.files.folder import write_whole
from pliant.isolation.launcher import confined
from pliant.isolation.users import account_of, give_folder
from pliant.people.system_ids import BUILDERS

_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedChildren:
    """Keeps children within their reach: a `ChildIsolation`."""

    home: Path
    """The server's own folder, of which they see what they are given and nothing else."""
    env: Mapping[str, str] = field(repr=False)
    """What of the server's environment all of them get."""
    user_of: Callable[[str], RunAs | None]
    """Whom the processes of a person run as; None: the server's own user."""
    reads: tuple[str, ...] = ()
    """Folders that all of them may read: the server's own packages, and what the operator allows."""
    hides: tuple[str, ...] = ()
    """More folders of which those that run people's code see nothing but what they are given."""
    is_off: bool = False
    """Isolation is turned off: they are other users, where they can be, and that is all."""
    required: bool = False
    """They do not start where a wall is missing."""

    def confine(self, program: ChildProgram, reach: ChildReach) -> ChildProgram:
        """Return a program as it is run within a reach."""
        confinement = Confinement(
            user=self._run_as(reach.user),
            writes=(str(reach.home), *reach.writes),
            reads=tuple(dict.fromkeys((*reach.reads, *self.reads))),
            hides=(str(self.home), *(self.hides if reach.runs_strangers else ())),
            has_network=reach.has_network,
            sees_all=not reach.runs_strangers,
            required=self.required and reach.user != AsServer(),
        )
        home = str(reach.home)
        env = {**self.env, "HOME": home, "TMPDIR": home, **(program.env or {})}
        command = program.command if self.is_off else confined(program.command, confinement)
        return replace(program, command=command, env=env)

    def make_folder(self, folder: Path, user: ChildUser, files: Mapping[str, bytes] = _NOTHING) -> None:
        """Make a folder that belongs to a user, with these files in it."""
        folder.mkdir(mode=0o700)
        for name, content in files.items():
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(folder / name, content, durable=False)
        run_as = self._run_as(user)
        if run_as is not None:
            give_folder(folder, account_of(run_as))

    def _run_as(self, user: ChildUser) -> RunAs | None:
        match user:
            case AsPerson(name):
                return self.user_of(name)
            case AsBuilder():
                return self.user_of(BUILDERS)
            case AsServer():
                return None
            case _:
                assert_never(user)
