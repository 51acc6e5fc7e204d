"""The server's certificate: one that was given, checked, or one that is made here and renewed in time.

Whoever is to trust the server gets a file with its own certificate and nothing else, so that they trust this server
and no other. How certificates are made and read stands in `files.certificates`; machines that join get theirs from
another authority (`cluster.link.authority`), and nothing else knows `cryptography`.
"""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from pliant.core.errors import InvalidInput, Problem
from pliant.entry.server.home import ADDRESS
from pliant.files.certificates import CertificateFacts, belong_together, key_pem, names_of, new_key, sign
from pliant.files.folder import write_whole

FOLDER: Final = "tls"
"""In the state folder: `certificate.pem` and `key.pem` if they were made here."""

VALID: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=30)
"""A certificate that ends sooner is replaced at the server's start."""
_CLOCKS_DIFFER: Final = timedelta(hours=1)
_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
_MAX_COMMON_NAME: Final = 64


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
        if any(_covers(name, host) for name in self.names):
            return None
        return self.names[0].replace("*", "pliant")


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
        certificate, key = settings.certificate, settings.key
        own = _check_given(certificate, key, at)
    else:
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        wanted = tuple(dict.fromkeys((*_ALWAYS, socket.gethostname(), *settings.names)))
        own = _read(certificate, key, () if is_shared else wanted, at) or _make(certificate, key, wanted, at)
    (home / ADDRESS).mkdir(mode=0o700, exist_ok=True)
    trusted = home / ADDRESS / "server.pem"
    write_whole(trusted, own.public_bytes(Encoding.PEM), mode=0o644)
    names = tuple(names_of(own))
    public = (*settings.names, *(name for name in names if name not in _ALWAYS))
    return Tls(
        certificate=certificate,
        key=key,
        trusted=trusted,
        fingerprint=_fingerprint(own),
        names=names,
        public_name=next((name for name in public if "*" not in name), None),
    )


def _check_given(certificate: Path, key: Path, at: datetime) -> x509.Certificate:
    """Return the server's certificate out of a file that was given.

    Raises:
        InvalidInput: with everything that is wrong.
    """
    problems: list[Problem] = []
    own, private = _load_certificate(certificate, problems), _load_key(key, problems)
    if own is not None:
        problems += [Problem(field="--tls-cert", message=message) for message in _faults(own, certificate, at)]
        if private is not None and not belong_together(own, private):
            message = (
                f"the key {key} is not the one of the certificate {certificate}; give the two that were made together"
            )
            problems.append(Problem(field="--tls-key", message=message))
    if problems or own is None:
        raise InvalidInput(*problems)
    return own


def _load_certificate(path: Path, problems: list[Problem]) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError) as error:
        problems.append(Problem(field="--tls-cert", message=f"{path} is no readable certificate in PEM form ({error})"))
        return None


def _load_key(path: Path, problems: list[Problem]) -> PrivateKeyTypes | None:
    try:
        return load_pem_private_key(path.read_bytes(), password=None)
    except TypeError:
        message = f"the key {path} has a passphrase, which a server that starts by itself cannot type; remove it"
    except (OSError, ValueError) as error:
        message = f"{path} is no readable private key in PEM form ({error})"
    problems.append(Problem(field="--tls-key", message=message))
    return None


def _faults(own: x509.Certificate, path: Path, at: datetime) -> Iterable[str]:
    if at >= own.not_valid_after_utc:
        yield f"the certificate {path} ended on {own.not_valid_after_utc:%Y-%m-%d}; get a new one"
    if at < own.not_valid_before_utc:
        yield f"the certificate {path} begins on {own.not_valid_before_utc:%Y-%m-%d} only; see this machine's clock"
    if not names_of(own):
        yield f"the certificate {path} names no host (no subject alternative name); get one that does"


def _read(certificate: Path, key: Path, wanted: Sequence[str], at: datetime) -> x509.Certificate | None:
    """Return the certificate that was made before, unless it ends soon or lacks a name."""
    ignored: list[Problem] = []
    own, private = _load_certificate(certificate, ignored), _load_key(key, ignored)
    if own is not None and private is not None and belong_together(own, private) and _lasts(own, wanted, at):
        return own
    return None


def _make(certificate: Path, key: Path, wanted: Sequence[str], at: datetime) -> x509.Certificate:
    new = new_key()
    own = sign(_facts(wanted, at), new.public_key(), new)
    write_whole(key, key_pem(new))
    write_whole(certificate, own.public_bytes(Encoding.PEM))
    return own


def _lasts(own: x509.Certificate, wanted: Sequence[str], at: datetime) -> bool:
    in_time = own.not_valid_before_utc <= at and at + RENEWED_BEFORE < own.not_valid_after_utc
    return in_time and {name.lower() for name in wanted} <= {name.lower() for name in names_of(own)}


def _facts(names: Sequence[str], at: datetime) -> CertificateFacts:
    return CertificateFacts(
        common_name=next((name for name in reversed(names) if len(name) <= _MAX_COMMON_NAME), "pliant"),
        names=tuple(names),
        begins=at - _CLOCKS_DIFFER,
        ends=at + VALID,
        purpose=ExtendedKeyUsageOID.SERVER_AUTH,
    )


def _covers(name: str, host: str) -> bool:
    """Tell whether a name in a certificate is one of this host (RFC 9525: a star stands for one whole first part)."""
    if name.startswith("*."):
        return host.partition(".")[2].lower() == name[2:].lower()
    return name.lower() == host.lower()


def _fingerprint(own: x509.Certificate) -> str:
    return own.fingerprint(SHA256()).hex(":").upper()
