"""What the store holds of one job: the list that is written after the content, so whoever reads it finds all of it.

An object is never written over. What has changed gets another key beside the old one, and the old object goes when the
list that names the new one is there. Example: `result/log/job-1.1.local/stdout` is copied to a key of that name; a
minute later, when it is longer, to `…/stdout~2`; then the list says so, and the first is removed. The next one gets the
first key again.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

MANIFEST: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 64 << 20
FORMAT: Final = 1
MAX_KEY_BYTES: Final = 800
"""S3 takes 1,024 with all that stands before it."""
CHECKPOINT: Final = re.compile(r"result/checkpoint/step-([0-9]{12})\.ckpt")
_SAFE: Final = "/._-=+@, ()"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as the store holds it."""

    key: str
    """Below the folder of its job."""
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the store holds of one job."""

    job_id: str
    written_at: float
    is_final: bool = False
    """The job has ended, and this is all of it."""
    files: Mapping[str, StoredFile] = field(default_factory=dict)
    """By their ways from the folder of the job."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """What is not copied, and why."""

    @property
    def step(self) -> int | None:
        """The step of the newest checkpoint; None: there is none."""
        return max((step for name in self.files if (step := step_of(name)) is not None), default=None)

    @property
    def keys(self) -> frozenset[str]:
        """All keys that it names, and its own."""
        return frozenset((MANIFEST, *(file.key for file in self.files.values())))


def step_of(name: str) -> int | None:
    """Return the step of the checkpoint that a file is; None: it is none."""
    found = CHECKPOINT.fullmatch(name)
    return int(found[1]) if found else None


def choose_key(name: str, taken: Collection[str]) -> str | None:
    """Return a key for the content of a file, which no other has; None: its name is too long for one."""
    key = quote(name.encode("utf-8", "surrogateescape"), safe=_SAFE)
    number = 1
    while (chosen := key if number == 1 else f"{key}~{number}") in taken:
        number += 1
    return chosen if len(chosen) <= MAX_KEY_BYTES else None


def encode_manifest(manifest: Manifest) -> bytes:
    """Return it as JSON."""
    files = {
        name: {"key": file.key, "num_bytes": file.num_bytes, "sha256": file.sha256}
        for name, file in sorted(manifest.files.items())
    }
    shape = {
        "format": FORMAT,
        "job": manifest.job_id,
        "written_at": manifest.written_at,
        "is_final": manifest.is_final,
        "step": manifest.step,
        "files": files,
        "left_out": dict(sorted(manifest.left_out.items())),
    }
    return json.dumps(shape, indent=1).encode() + b"\n"


def decode_manifest(content: bytes, job_id: str) -> Manifest:
    """Return the manifest of a job.

    Raises:
        ValueError: it is none, or names what lies outside of the job's folder.
    """
    try:
        shape = json.loads(content)
        if shape["format"] != FORMAT or shape["job"] != job_id:
            raise ValueError(f"it is of format {shape['format']!r:.20} and of {shape['job']!r:.40}")
        files = {_way(name): _stored(file) for name, file in shape["files"].items()}
        return Manifest(
            job_id=job_id,
            written_at=float(shape["written_at"]),
            is_final=shape["is_final"] is True,
            files=files,
            left_out={str(name): str(why) for name, why in shape["left_out"].items()},
        )
    except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"it is no list of copies: {type(error).__name__}: {error!s:.100}") from error


def _stored(shape: Mapping[str, Any]) -> StoredFile:
    key, num_bytes, digest = shape["key"], shape["num_bytes"], shape["sha256"]
    if type(num_bytes) is not int or num_bytes < 0 or not _DIGEST.fullmatch(digest):
        raise ValueError(f"it has no length or no digest of {key!r:.100}")
    return StoredFile(key=_way(key), num_bytes=num_bytes, sha256=digest)


def _way(name: str) -> str:
    """Return a name if it is a way down from a folder."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r:.100} leads out of the folder")
    return name
