"""Where the server is and how to check its certificate: as the task was started with, or as `server.json` says now."""

import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pliant.api.trust import WEBSOCKET_SCHEMES, Trust


class ServerAddress:
    """The newest address of the server. The leading server replaces `server.json`, which is read again only then.

    Args:
        url: the server's base URL.
        file: `server.json` of the state folder; None if it is on another machine.
        trust: how to check the server's certificate.
    """

    def __init__(self, url: str, file: Path | None = None, trust: Trust | None = None) -> None:
        self._url = url
        self._trust = trust or Trust()
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._challenge = ""

    def url(self) -> str:
        """Return the server's base URL. A file that is missing or broken changes nothing."""
        if self._file is None:
            return self._url
        try:
            found = self._file.stat()
            if (seen := (found.st_ino, found.st_mtime_ns)) != self._seen:
                record = json.loads(self._file.read_text(encoding="utf-8"))
                if urlsplit(str(record["url"])).scheme in WEBSOCKET_SCHEMES:
                    self._url, self._trust = str(record["url"]), _trust_of(record)
                    self._challenge = str(record.get("challenge", ""))
                self._seen = seen
        except (OSError, ValueError, KeyError, TypeError):
            return self._url
        return self._url

    def challenge(self) -> str:
        """Return what this server has tasks prove their tokens with; empty if there is no file to tell it."""
        self.url()
        return self._challenge

    def tls(self) -> ssl.SSLContext | None:
        """Return what checks the server's certificate; None if it has none.

        Raises:
            InvalidInput: the certificate to compare with cannot be read.
        """
        return self._trust.context() if urlsplit(self.url()).scheme == "https" else None

    def server_name(self) -> str | None:
        """Return the name that must stand in the certificate; None: the host in the URL."""
        return self._trust.server_name if urlsplit(self.url()).scheme == "https" else None


def _trust_of(record: dict[str, Any]) -> Trust:
    certificate, name = record.get("certificate"), record.get("server_name")
    return Trust(
        certificate=Path(certificate) if isinstance(certificate, str) else None,
        server_name=name if isinstance(name, str) else None,
    )
