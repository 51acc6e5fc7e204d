"""The server's certificate: one that was given, checked, or one that is made here and renewed in time.

Whoever is to trust the server gets a file with its own certificate and nothing else, so that they trust this server
and no other. How one is checked, made and renewed stands in `own_certificate`; machines that join get theirs from
another authority (`cluster.link.authority`).
"""

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from pliant.entry.own_certificate import CertificatePaths, check_given, find_or_make, made_in, name_for
from pliant.entry.server.home import ADDRESS
from pliant.files.certificates import names_of
from pliant.files.folder import write_whole

FOLDER: Final = "tls"
"""In the state folder: `certificate.pem` and `key.pem` if they were made here."""

_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How the server gets its certificate."""

    certificate: Path | None = None
    """A PEM file with the server's certificate and those between it and its authority; None: one is made."""
    key: Path | None = None
    names: tuple[str, ...] = ()
    """Names and addresses that the made one is for, besides this machine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A certificate that the server can use."""

    certificate: Path
    key: Path
    trusted: Path
    """The server's own certificate alone."""
    fingerprint: str
    """SHA-256, in pairs of hex digits."""
    names: tuple[str, ...]
    """Names and addresses that it is for."""
    public_name: str | None = None
    """The one that people on other machines are told: what was asked for first, else the first that is no star."""

    def name_for(self, host: str) -> str | None:
        """Return by which name to check the certificate of the server at `host`; None: by `host` itself."""
        return name_for(self.names, host)


def prepare(settings: TlsSettings, home: Path, *, now: float, is_shared: bool = False) -> Tls:
    """Return the certificate to use; make one, or renew it, if none was given.

    Args:
        settings: what was asked for.
        home: the folder where it is, or is made.
        now: seconds since the epoch.
        is_shared: another server shows it, or did, and is trusted by it: it is used whatever names it lacks.

    Raises:
        InvalidInput: with everything that is wrong with what was given.
    """
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    at = datetime.fromtimestamp(now, UTC)
    if settings.certificate is not None and settings.key is not None:
        paths = CertificatePaths(certificate=settings.certificate, key=settings.key)
        own = check_given(paths, at, ("--tls-cert", "--tls-key"))
    else:
        paths = made_in(folder)
        wanted = tuple(dict.fromkeys((*_ALWAYS, socket.gethostname(), *settings.names)))
        own = find_or_make(paths, wanted, at, with_any_names=is_shared)
    (home / ADDRESS).mkdir(mode=0o700, exist_ok=True)
    trusted = home / ADDRESS / "server.pem"
    write_whole(trusted, own.public_bytes(Encoding.PEM), mode=0o644)
    names = tuple(names_of(own))
    public = (*settings.names, *(name for name in names if name not in _ALWAYS))
    return Tls(
        certificate=paths.certificate,
        key=paths.key,
        trusted=trusted,
        fingerprint=_fingerprint(own),
        names=names,
        public_name=next((name for name in public if "*" not in name), None),
    )


def _fingerprint(own: x509.Certificate) -> str:
    return own.fingerprint(SHA256()).hex(":").upper()
