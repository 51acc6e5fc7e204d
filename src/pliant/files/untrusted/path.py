"""Where something lies that somebody else's program can write to. It opens nothing."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class UntrustedPath:
    """A place below a folder of ours. It is no `os.PathLike`: only `pliant.files.untrusted` opens it.

    As text (`str`) it is the whole path, for those who run as its owner, and for messages.
    """

    root: Path
    """A folder that nobody else can rename, or put anything in."""
    inside: str
    """The way from there, with `/` between the names."""

    def __truediv__(self, name: str) -> "UntrustedPath":
        return UntrustedPath(self.root, f"{self.inside}/{name}" if self.inside else name)

    def __str__(self) -> str:
        return str(self.root / self.inside)

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.inside.rpartition("/")[2]
