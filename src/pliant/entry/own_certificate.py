"""The certificate that a process of this machine shows to people: one that was given, checked, or one that it makes.

How certificates are made and read stands in `files.certificates`. Knows no process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from pliant.core.errors import InvalidInput, Problem
from pliant.files.certificates import CertificateFacts, belong_together, key_pem, names_of, new_key, sign
from pliant.files.folder import write_whole

VALID: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=30)
"""A certificate that ends sooner is replaced at the start of who shows it."""
_CLOCKS_DIFFER: Final = timedelta(hours=1)
_MAX_COMMON_NAME: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatePaths:
    """Where a certificate and its key are, in PEM form."""

    certificate: Path
    key: Path


def made_in(folder: Path) -> CertificatePaths:
    """Return where those are that are made in a folder."""
    return CertificatePaths(certificate=folder / "certificate.pem", key=folder / "key.pem")


def check_given(paths: CertificatePaths, at: datetime, fields: tuple[str, str]) -> x509.Certificate:
    """Return the own certificate out of a file that was given.

    Args:
        paths: what was given.
        at: the time.
        fields: by which options.

    Raises:
        InvalidInput: with everything that is wrong.
    """
    problems: list[Problem] = []
    own, private = _load_certificate(paths.certificate, problems, fields[0]), _load_key(paths.key, problems, fields[1])
    if own is not None:
        problems += [Problem(field=fields[0], message=message) for message in _faults(own, paths.certificate, at)]
        if private is not None and not belong_together(own, private):
            message = (
                f"the key {paths.key} is not the one of the certificate {paths.certificate}; give the two that were "
                f"made together"
            )
            problems.append(Problem(field=fields[1], message=message))
    if problems or own is None:
        raise InvalidInput(*problems)
    return own


def find_or_make(
    paths: CertificatePaths, names: Sequence[str], at: datetime, *, with_any_names: bool = False
) -> x509.Certificate:
    """Return the certificate that was made before, or, if it ends soon or lacks a name, a new one in its place.

    Args:
        paths: where it is.
        names: names and addresses that it is to be for.
        at: the time.
        with_any_names: one that lacks some is good enough.

    Raises:
        OSError: it cannot be written.
    """
    return _read(paths, () if with_any_names else names, at) or _make(paths, names, at)


def name_for(names: Sequence[str], host: str) -> str | None:
    """Return by which of the names in a certificate to check it, of who listens at `host`; None: by `host` itself."""
    if any(_covers(name, host) for name in names):
        return None
    return names[0].replace("*", "pliant")


def _load_certificate(path: Path, problems: list[Problem], field: str = "") -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError) as error:
        problems.append(Problem(field=field, message=f"{path} is no readable certificate in PEM form ({error})"))
        return None


def _load_key(path: Path, problems: list[Problem], field: str = "") -> PrivateKeyTypes | None:
    try:
        return load_pem_private_key(path.read_bytes(), password=None)
    except TypeError:
        message = f"the key {path} has a passphrase, which a server that starts by itself cannot type; remove it"
    except (OSError, ValueError) as error:
        message = f"{path} is no readable private key in PEM form ({error})"
    problems.append(Problem(field=field, message=message))
    return None


def _faults(own: x509.Certificate, path: Path, at: datetime) -> Iterable[str]:
    if at >= own.not_valid_after_utc:
        yield f"the certificate {path} ended on {own.not_valid_after_utc:%Y-%m-%d}; get a new one"
    if at < own.not_valid_before_utc:
        yield f"the certificate {path} begins on {own.not_valid_before_utc:%Y-%m-%d} only; see this machine's clock"
    if not names_of(own):
        yield f"the certificate {path} names no host (no subject alternative name); get one that does"


def _read(paths: CertificatePaths, wanted: Sequence[str], at: datetime) -> x509.Certificate | None:
    """Return the certificate that was made before, unless it ends soon or lacks a name."""
    ignored: list[Problem] = []
    own, private = _load_certificate(paths.certificate, ignored), _load_key(paths.key, ignored)
    if own is not None and private is not None and belong_together(own, private) and _lasts(own, wanted, at):
        return own
    return None


def _make(paths: CertificatePaths, wanted: Sequence[str], at: datetime) -> x509.Certificate:
    new = new_key()
    own = sign(_facts(wanted, at), new.public_key(), new)
    write_whole(paths.key, key_pem(new))
    write_whole(paths.certificate, own.public_bytes(Encoding.PEM))
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
