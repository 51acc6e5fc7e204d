"""How whoever speaks to a server checks its certificate: the Python client and the control links do the same."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pliant.core.errors import InvalidInput

WEBSOCKET_SCHEMES: Final = {"http": "ws", "https": "wss"}


def websocket_url(url: str) -> str:
    """Return the base URL of a server with the scheme of a WebSocket."""
    parts = urlsplit(url)
    return f"{WEBSOCKET_SCHEMES[parts.scheme]}://{parts.netloc}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Which server is believed to be the right one. Nothing here can turn the check off."""

    certificate: Path | None = None
    """PEM: the server's own certificate, or its authority's; None: the authorities that this machine trusts."""
    pem: str | None = None
    """The same as text, in the place of a file."""
    server_name: str | None = None
    """The name that must stand in the server's certificate; None: the host in its URL."""

    def context(self) -> ssl.SSLContext:
        """Return what checks the certificate and its name, over TLS 1.2 or newer. Reads the file anew.

        Raises:
            InvalidInput: the file cannot be read, or holds no certificate.
        """
        try:
            file = None if self.certificate is None else str(self.certificate)
            context = ssl.create_default_context(cafile=file, cadata=self.pem)
        except OSError as error:
            which = "of a gateway" if self.certificate is None else self.certificate
            message = f"the certificate {which} cannot be used ({error}); give the one that the server names"
            raise InvalidInput.at("PLIANT_CA", message) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None or self.pem is not None:
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a server's own certificate is enough
        return context
