"""The server's certificate: made, kept, renewed, or given and checked; and what is served with it."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from pliant.api.trust import Trust
from pliant.client.http.connection import Connection
from pliant.core.errors import InvalidInput, Unavailable
from pliant.entry.own_certificate import RENEWED_BEFORE, VALID
from pliant.entry.server.listener import Listener, open_listener
from pliant.entry.server.settings import ServerSettings, read_settings
from pliant.entry.server.tls import Tls, TlsSettings, prepare

NOW = time.time()
DAY_S = 86400.0
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def made(home: Path, *names: str, now: float = NOW) -> Tls:
    return prepare(TlsSettings(names=names), home, now=now)


def given(folder: Path, *names: str, days: float = 90, authority: bool = False) -> TlsSettings:
    """Make a certificate as a company would: for these names, from an authority of its own if asked."""
    key, at = ec.generate_private_key(ec.SECP384R1()), datetime.fromtimestamp(NOW, UTC)
    signer, issuer = key, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    subject = issuer
    chain = b""
    if authority:
        signer, issuer = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]),
        )
        root = _certificate(signer, signer, issuer, issuer, at, 90)
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        root = root.add_extension(_SIGNS_CERTIFICATES, critical=True)
        chain = root.sign(signer, SHA256()).public_bytes(Encoding.PEM)
        (folder / "ca.pem").write_bytes(chain)
    builder = _certificate(key, signer, subject, issuer, at, days)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
    own = builder.sign(signer, SHA256()).public_bytes(Encoding.PEM)
    (folder / "cert.pem").write_bytes(own + chain)
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return TlsSettings(certificate=folder / "cert.pem", key=folder / "key.pem")


def _certificate(
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    issuer: x509.Name,
    at: datetime,
    days: float,
) -> x509.CertificateBuilder:
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(at - timedelta(days=200))
    builder = builder.not_valid_after(at + timedelta(days=days)).add_extension(authority, critical=False)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def test_a_standby_leaves_the_certificate_of_the_server_that_leads_as_it_is(tmp_path: Path) -> None:
    leading = made(tmp_path, "gpu1.example.org")
    standby = prepare(TlsSettings(names=("gpu2.example.org",)), tmp_path, now=NOW, is_shared=True)

    assert (standby.fingerprint, standby.names) == (leading.fingerprint, leading.names)
    assert standby.name_for("gpu2.example.org") == leading.names[0], "it is checked by a name that stands in it"
    assert made(tmp_path, "gpu2.example.org").fingerprint != leading.fingerprint


def test_a_certificate_is_made_once_for_this_machine_and_the_names_asked_for(tmp_path: Path) -> None:
    first = made(tmp_path, "pool.example.org", "10.1.2.3")
    own = x509.load_pem_x509_certificate(first.certificate.read_bytes())
    assert {"localhost", "127.0.0.1", "::1", socket.gethostname(), "pool.example.org", "10.1.2.3"} == set(first.names)
    assert isinstance(own.public_key(), ec.EllipticCurvePublicKey)
    assert own.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]
    assert own.not_valid_after_utc - own.not_valid_before_utc <= VALID + timedelta(hours=2)
    assert first.fingerprint == own.fingerprint(SHA256()).hex(":").upper()
    for path in (first.key, first.certificate, first.trusted):
        is_public = path == first.trusted  # tasks of other users read it; it holds no secret
        assert path.stat().st_mode & 0o777 == (0o644 if is_public else 0o600), path
    assert first.key.parent.stat().st_mode & 0o777 == 0o700
    assert b"PRIVATE" not in first.trusted.read_bytes()
    later = made(tmp_path, now=NOW + 300 * DAY_S)
    assert later == replace(first, public_name=socket.gethostname()), "it lasts, and a name not asked for does no harm"


@pytest.mark.parametrize("days", [VALID.days - RENEWED_BEFORE.days, 400, -2])
def test_a_certificate_that_ends_within_thirty_days_is_renewed(tmp_path: Path, days: int) -> None:
    first = made(tmp_path)
    renewed = made(tmp_path, now=NOW + days * DAY_S)
    assert renewed.fingerprint != first.fingerprint
    assert made(tmp_path, now=NOW + days * DAY_S) == renewed


def test_a_certificate_that_lacks_a_name_or_its_key_is_replaced(tmp_path: Path) -> None:
    first = made(tmp_path)
    named = made(tmp_path, "pool.example.org")
    assert first.fingerprint != named.fingerprint
    named.key.write_text("not a key")
    mended = made(tmp_path, "pool.example.org")
    assert mended.fingerprint != named.fingerprint
    (tmp_path / "other").mkdir()
    mended.key.write_bytes(made(tmp_path / "other").key.read_bytes())
    assert made(tmp_path, "pool.example.org").fingerprint != mended.fingerprint


def problems(settings: TlsSettings, home: Path) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        prepare(settings, home, now=NOW)
    return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]


def test_what_is_wrong_with_a_given_certificate_is_told_all_at_once(tmp_path: Path) -> None:
    nothing = TlsSettings(certificate=tmp_path / "no-cert", key=tmp_path / "no-key")
    said = problems(nothing, tmp_path)
    assert ["no-cert is no readable certificate" in said[0], "no-key is no readable private key" in said[1]] == [
        True,
        True,
    ]
    old = given(tmp_path, days=-1)
    said = problems(old, tmp_path)
    assert ["ended on" in said[0], "names no host" in said[1]] == [True, True]
    (tmp_path / "other").mkdir()
    other = given(tmp_path / "other", "pool.example.org")
    said = problems(TlsSettings(certificate=other.certificate, key=old.key), tmp_path)
    assert len(said) == 1
    assert said[0].startswith("--tls-key: the key")
    locked = ec.generate_private_key(ec.SECP256R1())
    secret = locked.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    (tmp_path / "locked.pem").write_bytes(secret)
    assert (
        "has a passphrase"
        in problems(TlsSettings(certificate=other.certificate, key=tmp_path / "locked.pem"), tmp_path)[0]
    )


def settings_of(home: Path, *args: str) -> ServerSettings:
    return read_settings(["--home", str(home), "--port", "0", *args], {})


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        (["--host", "0.0.0.0"], ["--host"]),
        (["--host", "pool.example.org"], ["--host"]),
        (["--tls-cert", "c"], ["--tls-cert"]),
        (["--tls-key", "k"], ["--tls-key"]),
        (["--tls", "--tls-cert", "c", "--tls-key", "k"], ["--tls"]),
        (["--tls-name", "a"], ["--tls-name"]),
        (["--tls", "--tls-name", "a b", "--tls-name=-x"], ["--tls-name", "--tls-name"]),
        (["--host", "::", "--tls-name", "a/b", "--port", "70000"], ["--host", "--tls-name", "--tls-name", "--port"]),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, args: list[str], fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings_of(tmp_path, *args)
    assert sorted(problem.field for problem in caught.value.problems) == sorted(fields)


def test_beyond_this_machine_the_server_listens_with_tls_only(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "--host", "0.0.0.0", "--tls").tls == TlsSettings()
    assert settings_of(tmp_path, "--host", "10.0.0.7", "--tls", "--tls-name", "a").tls == TlsSettings(
        names=("a", "10.0.0.7")
    )
    files = ["--tls-cert", str(tmp_path / "c"), "--tls-key", str(tmp_path / "k")]
    expected = TlsSettings(certificate=tmp_path / "c", key=tmp_path / "k")
    assert settings_of(tmp_path, "--host", "0.0.0.0", *files).tls == expected
    assert settings_of(tmp_path).tls is None


async def hello(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


@contextmanager
def served(listener: Listener) -> Iterator[Listener]:
    """Serve something at a listener until the end of the block."""
    server = uvicorn.Server(listener.config(hello, lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener.sock])), daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline, "it does not listen"
        time.sleep(0.005)
    try:
        yield listener
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


def healthy(url: str, trust: Trust) -> bool:
    """Ask the server; raise what keeps us from asking."""
    connection = Connection(url, None, 30.0, trust=trust)
    try:
        connection.call("GET", "/healthz")
    finally:
        connection.close()
    return True


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A server with a certificate that it made."""
    home = tmp_path_factory.mktemp("own")
    with served(open_listener(settings_of(home, "--tls", "--host", "0.0.0.0"), now=NOW)) as listener:
        yield listener


def test_clients_trust_the_servers_certificate_and_no_other(own: Listener, tmp_path: Path) -> None:
    assert own.url.startswith("https://127.0.0.1:")
    assert own.trust.server_name is None
    assert healthy(own.url, own.trust)
    assert healthy(own.url.replace("127.0.0.1", "localhost"), own.trust)
    with pytest.raises(Unavailable, match="cannot be trusted: self-signed certificate; give its certificate with --ca"):
        healthy(own.url, Trust())
    with pytest.raises(Unavailable, match="cannot be trusted"):
        healthy(own.url, Trust(certificate=made(tmp_path).trusted))
    with pytest.raises(Unavailable, match="cannot be trusted: Hostname mismatch"):
        healthy(own.url, Trust(certificate=own.trust.certificate, server_name="elsewhere.example.org"))
    with pytest.raises(InvalidInput, match=r"PLIANT_CA: the certificate .*nowhere\.pem cannot be used"):
        healthy(own.url, Trust(certificate=tmp_path / "nowhere.pem"))


def test_nothing_older_than_tls_1_2_is_spoken(own: Listener) -> None:
    for version, spoken in ((ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
        context = own.trust.context()
        context.minimum_version = context.maximum_version = version
        assert _shakes_hands(own, context) is spoken
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    assert not _shakes_hands(own, old)
    assert own.trust.context().minimum_version is ssl.TLSVersion.TLSv1_2


def _shakes_hands(listener: Listener, context: ssl.SSLContext) -> bool:
    address = ("127.0.0.1", listener.sock.getsockname()[1])
    with socket.create_connection(address, timeout=30) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost"):
                return True
        except (ssl.SSLError, ConnectionError):
            return False


def test_who_speaks_the_other_protocol_is_told(own: Listener, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        healthy(own.url.replace("https", "http"), Trust())
    with served(open_listener(settings_of(tmp_path), now=NOW)) as plain:
        assert plain.url.startswith("http://127.0.0.1:")
        with pytest.raises(Unavailable, match="it does not speak TLS"):
            healthy(plain.url.replace("http", "https"), own.trust)


@pytest.mark.parametrize("name", ["pool.example.org", "*.example.org"])
def test_a_given_certificate_for_another_name_is_checked_by_that_name(tmp_path: Path, name: str) -> None:
    settings = given(tmp_path, name, authority=True)
    files = ["--tls-cert", str(settings.certificate), "--tls-key", str(settings.key)]
    with served(open_listener(settings_of(tmp_path, *files), now=NOW)) as listener:
        assert listener.trust.server_name in ("pool.example.org", "pliant.example.org")
        assert listener.describe().keys() == {"certificate", "fingerprint", "server_name"}
        assert listener.trust.certificate is not None
        assert listener.trust.certificate.read_bytes().count(b"BEGIN CERTIFICATE") == 1, "not its authority's"
        assert healthy(listener.url, listener.trust)
        authority = Trust(certificate=tmp_path / "ca.pem", server_name="pool.example.org")
        assert healthy(listener.url, authority)
        with pytest.raises(Unavailable, match="IP address mismatch"):
            healthy(listener.url, Trust(certificate=tmp_path / "ca.pem"))


@pytest.mark.parametrize(
    ("options", "host"),
    [
        (("--host", "0.0.0.0", "--tls", "--tls-name", "gpu1.example.org"), "gpu1.example.org"),
        (("--host", "0.0.0.0", "--tls", "--tls-name", "fd00::7"), "[fd00::7]"),
        (("--host", "0.0.0.0", "--tls"), socket.gethostname()),
        (("--tls", "--tls-name", "gpu1.example.org"), "127.0.0.1"),
    ],
)
def test_others_are_told_an_address_that_they_can_reach(tmp_path: Path, options: tuple[str, ...], host: str) -> None:
    with closing(open_listener(settings_of(tmp_path, *options), now=NOW)) as listener:
        port = listener.sock.getsockname()[1]
        assert listener.url == f"https://127.0.0.1:{port}"
        assert listener.public_url == f"https://{host}:{port}"
        assert listener.describe().get("public_url", listener.url) == listener.public_url
