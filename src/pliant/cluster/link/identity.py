"""Who a machine is: its key, which never leaves it, and the certificate that it got when it joined the pool.

    key.pem           made here, once
    certificate.pem   signed by the pool's authority for the machine's name; renewed with the same key
    ca.pem            the pool's authority: no other server is spoken to
    servers.json      where the server was reached last

The folder is for the user of the agent alone. Whoever has it can be this machine, until it is removed from the pool.
"""

import json
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from pliant.cluster.link.authority import name_in
from pliant.core.errors import InvalidInput
from pliant.core.joining import machine_name_fault
from pliant.files.certificates import belong_together, key_pem, new_key
from pliant.files.folder import write_whole

MAX_SERVERS: Final = 16
_MAX_PEM: Final = 16 * 1024


class NodeIdentity:
    """A machine's identity in a folder, which is made if it is not there. One thread uses it at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._key_file, self._certificate_file = folder / "key.pem", folder / "certificate.pem"
        self._ca_file, self._servers_file = folder / "ca.pem", folder / "servers.json"
        self._folder = folder

    @property
    def name(self) -> str:
        """The machine's name in the pool; empty: it has not joined one."""
        certificate = self._certificate()
        return "" if certificate is None else name_in(certificate.public_bytes(Encoding.DER))

    @property
    def servers(self) -> tuple[str, ...]:
        """Addresses of the server that were remembered, the best first; none if nothing is readable there."""
        try:
            found = json.loads(self._servers_file.read_bytes())
        except (OSError, ValueError):
            return ()
        return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()

    def remember_servers(self, servers: Sequence[str]) -> None:
        """Keep the addresses at which the server is reached."""
        if tuple(servers[:MAX_SERVERS]) != self.servers:
            write_whole(self._servers_file, json.dumps(list(servers[:MAX_SERVERS])).encode())

    def make_request(self, name: str) -> str:
        """Return a request for a certificate of this name (PKCS #10, PEM); the key is made and stored first.

        Raises:
            InvalidInput: no machine may have this name.
        """
        if fault := machine_name_fault(name):
            raise InvalidInput.at("name", fault)
        key = self._key()
        if key is None:
            key = new_key()
            write_whole(self._key_file, key_pem(key))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        request = x509.CertificateSigningRequestBuilder(subject_name=subject).sign(key, SHA256())
        return request.public_bytes(Encoding.PEM).decode()

    def accept(self, certificate_pem: str, ca_pem: str) -> None:
        """Keep a certificate that the server has signed, and its authority.

        Raises:
            ValueError: it is not one for this machine's key, or not one of this authority; nothing was changed.
        """
        if len(certificate_pem) > _MAX_PEM or len(ca_pem) > _MAX_PEM:
            raise ValueError(f"the server sends a certificate of more than {_MAX_PEM} bytes")
        certificate = x509.load_pem_x509_certificate(certificate_pem.encode())
        authority = x509.load_pem_x509_certificate(ca_pem.encode())
        key = self._key()
        if key is None or not belong_together(certificate, key):
            raise ValueError("the server sends a certificate that is for another key than this machine's")
        try:
            certificate.verify_directly_issued_by(authority)
        except (InvalidSignature, TypeError, ValueError) as error:
            raise ValueError("the server sends a certificate that its own authority has not signed") from error
        name_in(certificate.public_bytes(Encoding.DER))
        write_whole(self._ca_file, authority.public_bytes(Encoding.PEM))
        write_whole(self._certificate_file, certificate.public_bytes(Encoding.PEM))

    def client_context(self) -> ssl.SSLContext:
        """Return how a machine that has joined meets the server; give `SERVER_NAME` as the server's host name.

        Raises:
            InvalidInput: it has not joined, or its files are damaged.
        """
        if self._certificate() is None:
            raise InvalidInput.at(
                str(self._folder), "this machine has not joined a pool, or its files are damaged; join with a new token"
            )
        context = _context()
        context.hostname_checks_common_name = False
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(self._ca_file)
        context.load_cert_chain(self._certificate_file, self._key_file)
        return context

    def joining_context(self) -> ssl.SSLContext:
        """Return how a machine that knows nothing of the pool meets the server: nothing is verified by this.

        The caller compares `pin_of` the certificate that it was shown with the pin in the token, before it says a word.
        """
        context = _context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def renewal_due(self, now: float) -> bool:
        """Tell whether half of the certificate's time is over; False if there is none."""
        certificate = self._certificate()
        if certificate is None:
            return False
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return datetime.fromtimestamp(now, UTC) >= begins + (ends - begins) / 2

    def _key(self) -> ec.EllipticCurvePrivateKey | None:
        try:
            key = load_pem_private_key(self._key_file.read_bytes(), password=None)
        except (OSError, ValueError, TypeError):
            return None
        return key if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1) else None

    def _certificate(self) -> x509.Certificate | None:
        """Return the certificate if it can be used: with this key, and with the authority there."""
        try:
            found = x509.load_pem_x509_certificate(self._certificate_file.read_bytes())
            x509.load_pem_x509_certificate(self._ca_file.read_bytes())
        except (OSError, ValueError):
            return None
        key = self._key()
        return found if key is not None and belong_together(found, key) else None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
