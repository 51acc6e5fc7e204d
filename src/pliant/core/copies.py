"""What of a job's folder is copied to an object store. It reads no file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FileMark = tuple[int, int, int]
"""Length, time of the last change in nanoseconds, and inode: where one differs the content may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToCopy:
    """A file of a job that is a result, or that it would be begun again from."""

    name: str
    """Its way from the folder of the job."""
    mark: FileMark
    is_urgent: bool = False
    """Without it the job cannot go on elsewhere: it is copied before all that is not."""

    @property
    def num_bytes(self) -> int:
        return self.mark[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesToCopy:
    """All of a job's, as they were when they were looked for."""

    files: tuple[FileToCopy, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """What is there and is not copied, or the folder that is not, and why."""
    is_whole: bool = True
    """What is neither among the files nor left out is not there."""
