"""Keys and certificates: made, written and read; used where the server gets its own, and where machines get theirs.

Every key is one of the curve P-256. Knows nothing of what a certificate is for: who makes one says that, for how long
it holds, and with whose key it is signed.
"""

import hashlib
import ipaddress
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate says."""

    common_name: str
    """At most 64 characters."""
    names: tuple[str, ...] = ()
    """Names and addresses of hosts that it is for."""
    begins: datetime
    ends: datetime
    purpose: x509.ObjectIdentifier | None
    """An extended usage: of servers, or of clients. None: it is an authority's, which signs others and does no more."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as it is kept in a file; it has no passphrase, since servers start by themselves."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def sign(
    facts: CertificateFacts,
    public: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    issuer: str | None = None,
) -> x509.Certificate:
    """Return a certificate of a public key; `issuer` is the common name of who signs, its own if it signs itself."""
    is_authority = facts.purpose is None
    builder = (
        x509.CertificateBuilder(
            subject_name=_name(facts.common_name), issuer_name=_name(issuer or facts.common_name), public_key=public
        )
        .serial_number(x509.random_serial_number())
        .not_valid_before(facts.begins)
        .not_valid_after(facts.ends)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(_usage(is_authority=is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if facts.names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in facts.names]), critical=False
        )
    if facts.purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([facts.purpose]), critical=False)
    return builder.sign(issuer_key, SHA256())


def own_pair(common_name: str, *, begins: datetime, ends: datetime) -> tuple[bytes, bytes]:
    """Return the PEM of a new key and a certificate of a server's that it has signed itself, and that in DER form."""
    key = new_key()
    facts = CertificateFacts(common_name=common_name, begins=begins, ends=ends, purpose=ExtendedKeyUsageOID.SERVER_AUTH)
    certificate = sign(facts, key.public_key(), key)
    pem = key_pem(key) + certificate.public_bytes(Encoding.PEM)
    return pem, certificate.public_bytes(Encoding.DER)


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the names and addresses of hosts that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = found.get_values_for_type(x509.IPAddress)
    return [*found.get_values_for_type(x509.DNSName), *(str(address) for address in addresses)]


def belong_together(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Tell whether a private key is the one of a certificate."""
    return public_bytes(certificate.public_key()) == public_bytes(key.public_key())


def key_digest(public: PublicKeyTypes) -> str:
    """Return the SHA-256 of a public key, in hex digits."""
    return hashlib.sha256(public_bytes(public)).hexdigest()


def public_bytes(public: PublicKeyTypes) -> bytes:
    """Return a public key in DER form."""
    return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
