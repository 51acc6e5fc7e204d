"""The built console in its folder: the page, and the files that it loads. Knows no HTTP but the names of encodings.

    index.html          the page; with `<base href="/">` and `__CSP_NONCE__` where the server writes what holds for it
    assets/NAME-HASH.*  never change under one name; `.gz` and `.br` beside them are the same, compressed
    favicon.svg, …      a few files that browsers look for by their names

A name leads to a file of one of these two folders or to nothing: it has no slash, and does not begin with a dot.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pliant.core.errors import NotFound

ROOT_FILES: Final = ("favicon.ico", "favicon.svg", "apple-touch-icon.png", "manifest.webmanifest")
"""What there may be beside the page; nothing else there is served."""
MEDIA_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".js": "text/javascript; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".webp": "image/webp",
        ".ico": "image/x-icon",
        ".woff2": "font/woff2",
        ".json": "application/json",
        ".txt": "text/plain; charset=utf-8",
        ".webmanifest": "application/manifest+json",
    }
)
"""Of files that are served; a file of another kind is not, so that nothing lies there by mistake."""
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""The better one first."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_BASE: Final = '<base href="/">'
_NONCE: Final = "__CSP_NONCE__"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFile:
    """A file of the bundle as it is sent."""

    content: bytes
    media_type: str
    encoding: str | None


@dataclass(frozen=True, slots=True)
class Bundle:
    """A folder that may hold the built console."""

    folder: Path

    def page(self, *, base: str, nonce: str) -> str | None:
        """Return the page, for a server below the path `base`; None if this checkout has no built console.

        Args:
            base: a path that ends with a slash; addresses in the page are below it.
            nonce: by which the page's own styles are known.
        """
        try:
            text = (self.folder / "index.html").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return text.replace(_BASE, f'<base href="{escape(base)}">', 1).replace(_NONCE, escape(nonce))

    def asset(self, name: str, accepted: Collection[str]) -> BundledFile:
        """Return a file that never changes, in the best of the encodings that are accepted.

        Raises:
            NotFound: there is none.
        """
        return self._read(self.folder / "assets", name, accepted)

    def root_file(self, name: str, accepted: Collection[str]) -> BundledFile:
        """Return a file beside the page.

        Raises:
            NotFound: there is none.
        """
        return self._read(self.folder, name if name in ROOT_FILES else "", accepted)

    def _read(self, folder: Path, name: str, accepted: Collection[str]) -> BundledFile:
        media_type = MEDIA_TYPES.get(Path(name).suffix) if _NAME.fullmatch(name) else None
        if media_type is not None:
            for encoding, suffix in (*ENCODINGS, (None, "")):
                if encoding is not None and encoding not in accepted:
                    continue
                try:
                    content = (folder / f"{name}{suffix}").read_bytes()
                except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                    continue
                return BundledFile(content=content, media_type=media_type, encoding=encoding)
        raise NotFound(f"the console has no file {name!r:.80}; load its page again, which may be an older one")
