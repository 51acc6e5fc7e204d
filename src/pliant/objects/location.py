"""Where an object store is, by its URL: `s3://bucket/pliant`, `gs://bucket/pliant`, `file:///mnt/results`. Pure."""

import re
from typing import Final

SCHEMES: Final = {"s3": "pliant[s3]", "gs": "pliant[gs]", "file": "pliant"}
"""What each needs to be installed."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_PART: Final = re.compile(r"[A-Za-z0-9_=+@-][A-Za-z0-9._=+@ -]{0,99}")
_MAX_URL: Final = 300


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in small letters; empty if it has none."""
    scheme, separator, _ = url.partition("://")
    return scheme.lower() if separator else ""


def problem_of(url: str) -> str:
    """Return why results cannot be copied to a URL, whatever is there; empty if they can."""
    scheme = scheme_of(url)
    if scheme not in SCHEMES or not url.startswith(f"{scheme}://"):
        return (
            f"{url!r:.80} is no URL of an object store; give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///FOLDER"
        )
    first, *parts = url[len(scheme) + 3 :].rstrip("/").split("/")
    if "@" in first or "?" in url or "#" in url:
        return "credentials and options are no part of the URL; the server's environment has them, such as AWS_PROFILE"
    if scheme == "file" and (first or not parts):
        return f"{url!r:.80} names no folder; give its whole path, as file:///mnt/results"
    if scheme != "file" and not _BUCKET.fullmatch(first):
        return f"{first!r:.80} is no name of a bucket; give {scheme}://BUCKET/PREFIX"
    if len(url) > _MAX_URL or not all(map(_PART.fullmatch, parts)):
        return f"{url!r:.80} cannot be used: its path may have letters, digits and ._=+@-, and no dot first in a part"
    return ""
