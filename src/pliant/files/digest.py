"""SHA-256 of files, of parts of files and of whole folders."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 20
_CONTENT_DIGEST: Final = re.compile(r"\s*sha-256\s*=\s*:([A-Za-z0-9+/=]{44}):\s*")


def digest_of_file(path: Path, on_read: Callable[[int], None] = lambda _num_bytes: None) -> str:
    """Return the SHA-256 of a file in hex; `on_read` is called with the number of bytes of each piece."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            on_read(len(chunk))
    return digest.hexdigest()


def digest_of_names(digests: Iterable[tuple[str, str]]) -> str:
    """Return one SHA-256 over the names and digests of many files; their order does not matter.

    It is that of the lines `DIGEST  NAME` in the order of the names, as `sha256sum` writes them.
    """
    whole = hashlib.sha256()
    for name, digest in sorted(digests):
        whole.update(f"{digest}  {name}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def content_digest(digest: bytes) -> str:
    """Return the header `Content-Digest` (RFC 9530) of a SHA-256."""
    return f"sha-256=:{base64.b64encode(digest).decode()}:"


def read_content_digest(header: str) -> bytes | None:
    """Return the SHA-256 in a header `Content-Digest`; None if there is none that we know."""
    for part in header.split(","):
        if match := _CONTENT_DIGEST.fullmatch(part):
            try:
                return base64.b64decode(match[1], validate=True)
            except binascii.Error:
                return None
    return None
