"""The pool's own certificate authority: it signs the certificate that agents meet, and those of machines that joined.

    tls/nodes/authority.pem   the authority's key and certificate, in one file; made once, valid 20 years
    tls/nodes/server.pem      key and certificate of the port that agents dial; made anew when they end soon

Each file holds a key and its certificate, so that the two are never apart, whenever the power fails. Whoever has
`authority.pem` can be any machine; nobody but the server's user reads it. What begins, begins a day early, since clocks
of machines may be hours apart. A certificate of a machine is for clients and one of the server's port is for servers,
so that TLS itself refuses either in the other's place. Knows nothing of tokens, and not which machines may join.
"""

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pliant.core.errors import InvalidInput
from pliant.core.joining import machine_name_fault
from pliant.files.certificates import CertificateFacts, belong_together, key_digest, key_pem, new_key, sign
from pliant.files.folder import sync_folder, write_whole
from pliant.files.lock import hold_lock

FOLDER: Final = Path("tls") / "nodes"
"""In the state folder."""
SERVER_NAME: Final = "server.pliant.internal"
"""The name by which agents check the server's certificate, whatever address they dial."""
BACKDATED: Final = timedelta(hours=24)
AUTHORITY_VALID: Final = timedelta(days=20 * 365)
SERVER_VALID: Final = timedelta(days=365)
SERVER_RENEWED_BEFORE: Final = timedelta(days=30)
MACHINE_VALID: Final = timedelta(days=90)
MAX_CSR_BYTES: Final = 16 * 1024

_AUTHORITY: Final = "authority.pem"
_SERVER: Final = "server.pem"
_AUTHORITY_NAME: Final = "Pliant machines of this pool"
_NODE_DOMAIN: Final = "node.pliant.internal"
_MAX_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class _Pair:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return key_pem(self.key) + self.certificate.public_bytes(Encoding.PEM)


class Authority:
    """Signs for the pool. Safe to use from any thread."""

    def __init__(self, folder: Path, authority: _Pair, server: _Pair) -> None:
        self._folder = folder
        self._authority = authority
        self._server = server

    @property
    def ca_pem(self) -> str:
        """The authority's certificate, which machines keep; nothing secret is in it."""
        return self._authority.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def pin(self) -> str:
        """The pin of the server's certificate for the port that agents dial; it stands in join tokens."""
        return pin_of(self._server.certificate.public_bytes(Encoding.DER))

    def renew(self, *, now: float) -> bool:
        """Make the server's certificate anew if it ends soon; tell whether that was so.

        Then a new `server_context` is needed, and join tokens that were made before name a pin that is none any more.
        """
        at = datetime.fromtimestamp(now, UTC)
        if _lasts(self._server.certificate, at):
            return False
        self._server = _make_server(self._folder, self._authority, at)
        return True

    def server_context(self) -> ssl.SSLContext:
        """Return how the server meets agents: TLS 1.3; a certificate is asked for, and verified if one is shown.

        A link is never resumed from an earlier one, so that every one proves anew who is there. The certificate is read
        anew, since another server may have renewed it meanwhile.
        """
        self._server = _read_server(self._folder / _SERVER, self._authority) or self._server
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
        context.load_cert_chain(self._folder / _SERVER)
        context.load_verify_locations(cadata=self.ca_pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    def sign(self, csr_pem: str, name: str, *, now: float) -> str:
        """Return a machine's certificate, for the key that it asks for and for this name; what it says of names counts
        for nothing.

        Raises:
            ValueError: no machine may have this name, or what it asks with is not a request for a P-256 key, signed
                with that key; in words.
        """
        if fault := machine_name_fault(name):
            raise ValueError(fault)
        begins = datetime.fromtimestamp(now, UTC)
        facts = CertificateFacts(
            common_name=name,
            names=(f"{_dns_label(name)}.{_NODE_DOMAIN}",),
            begins=begins - BACKDATED,
            ends=begins + MACHINE_VALID,
            purpose=ExtendedKeyUsageOID.CLIENT_AUTH,
        )
        certificate = sign(facts, _requested_key(csr_pem), self._authority.key, _AUTHORITY_NAME)
        return certificate.public_bytes(Encoding.PEM).decode()


def open_authority(folder: Path, *, now: float) -> Authority:
    """Return the authority in a folder; it is made if there is none, and the server's certificate if that ends soon.

    Raises:
        InvalidInput: the authority's file cannot be read, or is none.
        OSError: the folder cannot be written to.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    at = datetime.fromtimestamp(now, UTC)
    with hold_lock(folder):  # of servers that start at once one makes what is missing
        authority = _open_authority(folder / _AUTHORITY, at)
        server = _read_server(folder / _SERVER, authority)
        if server is None or not _lasts(server.certificate, at):
            server = _make_server(folder, authority, at)
    return Authority(folder, authority, server)


def name_in(peer_certificate_der: bytes) -> str:
    """Return the name of the machine whose certificate this is; TLS has verified it already.

    Raises:
        ValueError: it is the certificate of no machine.
    """
    certificate = x509.load_der_x509_certificate(peer_certificate_der)
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(found[0].value) if len(found) == 1 else ""
    if fault := machine_name_fault(name):
        raise ValueError(f"a certificate is shown that is no machine's: {fault}")
    return name


def fingerprint(certificate: bytes | str) -> str:
    """Return the SHA-256 of the public key in a certificate (DER or PEM), hex digits: that of a `JoinedMachine`.

    Raises:
        ValueError: it is no certificate.
    """
    if isinstance(certificate, str):
        return key_digest(x509.load_pem_x509_certificate(certificate.encode()).public_key())
    is_pem = certificate.startswith(b"-----BEGIN")
    load = x509.load_pem_x509_certificate if is_pem else x509.load_der_x509_certificate
    return key_digest(load(certificate).public_key())


def pin_of(certificate_der: bytes) -> str:
    """Return the SHA-256 of a whole certificate, hex digits, as join tokens hold that of the server's."""
    return sha256(certificate_der).hexdigest()


def _open_authority(path: Path, at: datetime) -> _Pair:
    if not path.exists():
        key = new_key()
        facts = CertificateFacts(
            common_name=_AUTHORITY_NAME, begins=at - BACKDATED, ends=at + AUTHORITY_VALID, purpose=None
        )
        _write_new(path, _Pair(key, sign(facts, key.public_key(), key)).pem)
    try:
        return _read(path)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput.at(
            str(path),
            f"the authority of this pool's machines cannot be read ({error}); put the file back from a backup, or "
            f"remove it: then a new one is made, and every machine has to join again",
        ) from error


def _write_new(path: Path, content: bytes) -> None:
    """Write a file if there is none: of two servers that start at once, one makes it and both read that one."""
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # for the user alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
    sync_folder(path.parent)


def _read(path: Path) -> _Pair:
    content = path.read_bytes()
    key, certificate = load_pem_private_key(content, password=None), x509.load_pem_x509_certificate(content)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not belong_together(certificate, key):
        raise ValueError("its key is not the one of its certificate")
    return _Pair(key, certificate)


def _read_server(path: Path, authority: _Pair) -> _Pair | None:
    """Return the server's pair; None if there is none that this authority has signed."""
    try:
        found = _read(path)
        found.certificate.verify_directly_issued_by(authority.certificate)
    except (OSError, ValueError, TypeError, InvalidSignature):
        return None
    return found


def _make_server(folder: Path, authority: _Pair, at: datetime) -> _Pair:
    key = new_key()
    facts = CertificateFacts(
        common_name=SERVER_NAME,
        names=(SERVER_NAME,),
        begins=at - BACKDATED,
        ends=at + SERVER_VALID,
        purpose=ExtendedKeyUsageOID.SERVER_AUTH,
    )
    made = _Pair(key, sign(facts, key.public_key(), authority.key, _AUTHORITY_NAME))
    path = folder / _SERVER
    (write_whole if path.exists() else _write_new)(path, made.pem)
    return _read(path)


def _lasts(certificate: x509.Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at and at + SERVER_RENEWED_BEFORE < certificate.not_valid_after_utc


def _requested_key(csr_pem: str) -> ec.EllipticCurvePublicKey:
    """Return the key of a request that was signed with it.

    Raises:
        ValueError: in words.
    """
    if len(csr_pem) > MAX_CSR_BYTES:
        raise ValueError(f"the request for a certificate has {len(csr_pem)} bytes; {MAX_CSR_BYTES} are the most")
    try:
        request = x509.load_pem_x509_csr(csr_pem.encode())
        public, is_signed = request.public_key(), request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"this is no request for a certificate (PKCS #10, PEM): {error!s:.200}") from error
    if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(public.curve, ec.SECP256R1):
        raise ValueError("the request for a certificate is for a key of another kind than P-256")  # noqa: TRY004
    if not is_signed:
        raise ValueError("the request for a certificate is not signed with the key that it is for")
    return public


def _dns_label(name: str) -> str:
    """Return a machine's name as one part of a DNS name: itself if that may be one, else digits that stand for it."""
    plain = name.lower()
    if len(plain) <= _MAX_LABEL and plain.replace("-", "").isalnum() and not plain.endswith("-"):
        return plain
    return sha256(name.encode()).hexdigest()[:32]
