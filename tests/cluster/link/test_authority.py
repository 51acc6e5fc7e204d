"""Who is let in by TLS at the port that agents dial, over real sockets; and what the authority signs."""

import multiprocessing
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from pliant.cluster.link.authority import (
    MAX_CSR_BYTES,
    SERVER_NAME,
    Authority,
    fingerprint,
    name_in,
    open_authority,
    pin_of,
)
from pliant.cluster.link.identity import NodeIdentity
from pliant.core.errors import InvalidInput

DAY_S = 86400.0
NOW = time.time()


@dataclass(frozen=True)
class Met:
    """What came of one meeting of two ends: the certificates that each saw, and the errors."""

    client_saw: bytes | None
    server_saw: bytes | None
    errors: tuple[str, ...]


def meet(server: ssl.SSLContext, client: ssl.SSLContext, host: str = SERVER_NAME) -> Met:
    """Let a server and a client shake hands over a socket, and each say a byte."""
    here, there = socket.socketpair()
    seen: list[bytes | None] = []
    errors: list[str] = []

    def serve() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as link:
                seen.append(link.getpeercert(binary_form=True))
                link.sendall(b"x")
                link.recv(1)
        except (ssl.SSLError, OSError) as error:
            errors.append(str(error))
            with suppress(OSError):
                there.close()

    here.settimeout(10)
    there.settimeout(10)
    thread = threading.Thread(target=serve)
    thread.start()
    client_saw = None
    try:
        with client.wrap_socket(here, server_hostname=host) as link:
            if link.recv(1) == b"x":  # in TLS 1.3 a client learns here whether its certificate was taken
                client_saw = link.getpeercert(binary_form=True)
                assert link.version() == "TLSv1.3"
    except (ssl.SSLError, OSError) as error:
        errors.append(str(error))
        here.close()
    thread.join(10)
    assert not thread.is_alive()
    return Met(client_saw=client_saw, server_saw=seen[0] if seen else None, errors=tuple(errors))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return open_authority(tmp_path / "tls" / "nodes", now=NOW)


def joined(authority: Authority, folder: Path, name: str = "gpu-1", now: float = NOW) -> NodeIdentity:
    identity = NodeIdentity(folder)
    identity.accept(authority.sign(identity.make_request(name), name, now=now), authority.ca_pem)
    return identity


def test_a_machine_joins_by_the_pin_and_is_known_by_its_certificate_then(authority: Authority, tmp_path: Path) -> None:
    identity = NodeIdentity(tmp_path / "node")
    first = meet(authority.server_context(), identity.joining_context())
    assert first.errors == ()
    assert first.server_saw is None
    assert first.client_saw is not None
    assert pin_of(first.client_saw) == authority.pin
    signed = authority.sign(identity.make_request("gpu-1"), "gpu-1", now=NOW)
    identity.accept(signed, authority.ca_pem)
    then = meet(authority.server_context(), identity.client_context())
    assert then.errors == ()
    assert then.server_saw is not None
    assert name_in(then.server_saw) == identity.name == "gpu-1"
    assert fingerprint(then.server_saw) == fingerprint(signed) == fingerprint(signed.encode())


def test_a_certificate_of_another_pool_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = open_authority(tmp_path / "other", now=NOW)
    stranger = joined(other, tmp_path / "stranger")
    trusting = joined(authority, tmp_path / "node").client_context()
    assert "certificate verify failed" in " ".join(meet(other.server_context(), trusting).errors)
    trusting.load_verify_locations(cadata=other.ca_pem)
    assert meet(other.server_context(), trusting).client_saw is None  # it trusts them, they do not trust it
    context = stranger.client_context()
    context.load_verify_locations(cadata=authority.ca_pem)
    met = meet(authority.server_context(), context)
    assert met.server_saw is None
    assert met.client_saw is None


def test_a_machine_cannot_serve_in_place_of_the_server(authority: Authority, tmp_path: Path) -> None:
    joined(authority, tmp_path / "bad", name=SERVER_NAME)
    pretends = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pretends.load_cert_chain(tmp_path / "bad" / "certificate.pem", tmp_path / "bad" / "key.pem")
    client = joined(authority, tmp_path / "node").client_context()
    assert meet(pretends, client).client_saw is None
    client.check_hostname = False  # its purpose is refused, not only its name
    met = meet(pretends, client)
    assert met.client_saw is None
    assert "certificate purpose" in " ".join(met.errors)


def test_the_servers_certificate_is_none_of_a_machine(authority: Authority, tmp_path: Path) -> None:
    client = joined(authority, tmp_path / "node").client_context()
    client.load_cert_chain(tmp_path / "tls" / "nodes" / "server.pem")
    met = meet(authority.server_context(), client)
    assert met.server_saw is None
    assert "certificate purpose" in " ".join(met.errors)


def test_the_servers_name_is_checked(authority: Authority, tmp_path: Path) -> None:
    client = joined(authority, tmp_path / "node").client_context()
    assert "Hostname mismatch" in " ".join(meet(authority.server_context(), client, "other.pliant.internal").errors)


def test_no_older_tls_is_spoken(authority: Authority, tmp_path: Path) -> None:
    client = joined(authority, tmp_path / "node").client_context()
    client.minimum_version = ssl.TLSVersion.TLSv1_2
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert meet(authority.server_context(), client).server_saw is None


def test_an_expired_certificate_is_refused(authority: Authority, tmp_path: Path) -> None:
    late = joined(authority, tmp_path / "node", now=NOW - 91 * DAY_S)
    met = meet(authority.server_context(), late.client_context())
    assert met.server_saw is None
    assert "certificate has expired" in " ".join(met.errors)


def test_a_certificate_holds_where_the_clock_is_hours_behind(authority: Authority, tmp_path: Path) -> None:
    ahead = joined(authority, tmp_path / "node", now=NOW + 20 * 3600)
    assert meet(authority.server_context(), ahead.client_context()).errors == ()


def test_a_certificate_is_renewed_at_half_time_with_the_same_key(authority: Authority, tmp_path: Path) -> None:
    identity = joined(authority, tmp_path / "node")
    before = (tmp_path / "node" / "certificate.pem").read_text()
    assert [identity.renewal_due(NOW + days * DAY_S) for days in (0, 44, 45, 200)] == [False, False, True, True]
    later = NOW + 50 * DAY_S
    identity.accept(authority.sign(identity.make_request("gpu-1"), "gpu-1", now=later), authority.ca_pem)
    assert not identity.renewal_due(later)
    after = (tmp_path / "node" / "certificate.pem").read_text()
    assert before != after
    assert fingerprint(before) == fingerprint(after)
    assert not NodeIdentity(tmp_path / "new").renewal_due(NOW)


def test_the_authority_is_made_once_and_the_servers_certificate_in_time(tmp_path: Path) -> None:
    first = open_authority(tmp_path, now=NOW)
    again = open_authority(tmp_path, now=NOW + 334 * DAY_S)
    assert (again.ca_pem, again.pin) == (first.ca_pem, first.pin)
    assert not again.renew(now=NOW + 334 * DAY_S)
    assert again.renew(now=NOW + 336 * DAY_S)
    assert again.pin != first.pin
    last = open_authority(tmp_path, now=NOW + 336 * DAY_S)
    assert (last.ca_pem, last.pin) == (first.ca_pem, again.pin)


def _open(folder: Path) -> tuple[str, str]:
    authority = open_authority(folder, now=NOW)
    return authority.ca_pem, authority.pin


def test_servers_that_start_at_once_make_one_authority(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as servers:
        found = list(servers.map(_open, [tmp_path] * 12))
    assert len(found) == 12
    assert len(set(found)) == 1  # the same authority, and the same certificate of the server
    assert sorted(path.name for path in tmp_path.iterdir()) == ["authority.pem", "server.pem"]


def test_files_are_for_their_user_alone(authority: Authority, tmp_path: Path) -> None:
    joined(authority, tmp_path / "node").remember_servers(["10.0.0.1:7311"])
    nodes = tmp_path / "tls" / "nodes"
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (nodes, tmp_path / "node")} == {0o700}
    files = [*nodes.iterdir(), *(tmp_path / "node").iterdir()]
    assert len(files) == 6
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_folder_that_others_could_read_is_closed(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    open_authority(tmp_path, now=NOW)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"no certificate", None])
def test_a_damaged_authority_is_told_and_not_replaced(tmp_path: Path, damage: bytes | None) -> None:
    open_authority(tmp_path, now=NOW)
    path = tmp_path / "authority.pem"
    path.write_bytes(damage if damage is not None else path.read_bytes()[-700:])
    with pytest.raises(InvalidInput, match="put the file back from a backup"):
        open_authority(tmp_path, now=NOW)


@pytest.mark.parametrize("content", [b"", b"no certificate", b"other"])
def test_a_damaged_certificate_of_the_server_is_made_anew(tmp_path: Path, content: bytes) -> None:
    first = open_authority(tmp_path / "a", now=NOW)
    if content == b"other":
        open_authority(tmp_path / "b", now=NOW)
        content = (tmp_path / "b" / "server.pem").read_bytes()
    (tmp_path / "a" / "server.pem").write_bytes(content)
    again = open_authority(tmp_path / "a", now=NOW)
    assert again.ca_pem == first.ca_pem
    assert again.pin != first.pin
    assert meet(again.server_context(), joined(again, tmp_path / "node").client_context()).errors == ()


def request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, name: str = "gpu-1") -> str:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    built = x509.CertificateSigningRequestBuilder(subject_name=subject).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return built.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


def tampered() -> str:
    whole = x509.load_pem_x509_csr(request(ec.generate_private_key(ec.SECP256R1())).encode())
    der = whole.public_bytes(Encoding.DER).replace(b"gpu-1", b"gpu-2")
    return x509.load_der_x509_csr(der).public_bytes(Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("csr", "words"),
    [
        (lambda: "", "no request"),
        (lambda: "hello\x00 \ud800 world", "no request"),
        (lambda: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "no request"),
        (lambda: "x" * (MAX_CSR_BYTES + 1), "are the most"),
        (tampered, "not signed with the key"),
        (lambda: request(rsa.generate_private_key(65537, 2048)), "another kind than P-256"),
        (lambda: request(ec.generate_private_key(ec.SECP384R1())), "another kind than P-256"),
    ],
)
def test_what_is_no_request_of_a_machine_is_not_signed(
    authority: Authority, csr: Callable[[], str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        authority.sign(csr(), "gpu-1", now=NOW)


def test_what_a_request_says_of_itself_counts_for_nothing(authority: Authority) -> None:
    signed = authority.sign(request(ec.generate_private_key(ec.SECP256R1()), "local"), "Gpu_1.rack", now=NOW)
    certificate = x509.load_pem_x509_certificate(signed.encode())
    assert name_in(certificate.public_bytes(Encoding.DER)) == "Gpu_1.rack"
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize("name", ["local", "", "a" * 64, "../x", "a b", "a\n", "gpu:1", "-x", "é"])
def test_no_machine_gets_a_name_that_none_may_have(authority: Authority, tmp_path: Path, name: str) -> None:
    good = NodeIdentity(tmp_path / "node").make_request("gpu-1")
    with pytest.raises(ValueError, match="name"):
        authority.sign(good, name, now=NOW)
    with pytest.raises(InvalidInput):
        NodeIdentity(tmp_path / "node").make_request(name)


def test_names_of_any_form_are_signed(authority: Authority, tmp_path: Path) -> None:
    for number, name in enumerate(("a" * 63, "A.b_c-", "x-", "1", "xn--a.b")):
        assert joined(authority, tmp_path / str(number), name).name == name


def test_only_the_servers_own_certificate_is_no_machines(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no machine's"):
        name_in(x509.load_pem_x509_certificate(authority.ca_pem.encode()).public_bytes(Encoding.DER))


def test_a_machine_takes_no_certificate_that_is_not_its_own(authority: Authority, tmp_path: Path) -> None:
    other, identity = open_authority(tmp_path / "other", now=NOW), NodeIdentity(tmp_path / "node")
    theirs = authority.sign(NodeIdentity(tmp_path / "else").make_request("gpu-1"), "gpu-1", now=NOW)
    mine = authority.sign(identity.make_request("gpu-1"), "gpu-1", now=NOW)
    for certificate, ca, words in (
        (theirs, authority.ca_pem, "another key"),
        (mine, other.ca_pem, "has not signed"),
        (mine, "x" * 20_000, "more than"),
        ("", "", "PEM"),
    ):
        with pytest.raises(ValueError, match=words):
            identity.accept(certificate, ca)
    assert identity.name == ""
    with pytest.raises(InvalidInput, match="join with a new token"):
        identity.client_context()
    identity.accept(mine, authority.ca_pem)
    assert identity.name == "gpu-1"


def test_a_key_that_is_lost_makes_a_machine_one_that_has_not_joined(authority: Authority, tmp_path: Path) -> None:
    joined(authority, tmp_path / "node")
    (tmp_path / "node" / "key.pem").write_bytes(b"")
    assert NodeIdentity(tmp_path / "node").name == ""
    assert joined(authority, tmp_path / "node").name == "gpu-1"


def test_addresses_of_the_server_are_remembered(tmp_path: Path) -> None:
    identity = NodeIdentity(tmp_path)
    assert identity.servers == ()
    identity.remember_servers(["a:1", "b:2"])
    assert NodeIdentity(tmp_path).servers == ("a:1", "b:2")
    for damaged in (b"{", b"{}", b'[1, "c:3"]', b"\xff"):
        (tmp_path / "servers.json").write_bytes(damaged)
        assert identity.servers == (("c:3",) if b"c:3" in damaged else ())
