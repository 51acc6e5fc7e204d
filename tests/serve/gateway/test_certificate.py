"""A certificate that is replaced while a gateway runs: it is taken when both of its files are new, and not before."""

import logging
import ssl
import time
from pathlib import Path

import pytest

from pliant.entry.server.tls import Tls, TlsSettings, prepare
from pliant.serve.gateway.certificate import CertificateFiles


def make(home: Path) -> Tls:
    home.mkdir()
    return prepare(TlsSettings(), home, now=time.time())


def shown(context: ssl.SSLContext) -> str:
    """Return the certificate that a client gets in a handshake, as PEM."""
    client_context = ssl.create_default_context()
    client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found)


def test_a_new_certificate_is_shown_once_its_key_is_there_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    first, second = make(tmp_path / "first"), make(tmp_path / "second")
    before, after = first.certificate.read_text(), second.certificate.read_text()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(first.certificate, first.key)
    files = CertificateFiles(first.certificate, first.key)
    assert files.read_newer(context) is None
    first.certificate.write_text(after)
    for _ in range(2):
        assert files.read_newer(context) is None, "the key is the old one"
    assert shown(context) == before
    assert caplog.text.count("cannot be used") == 1
    first.key.write_bytes(second.key.read_bytes())
    pair = files.read_newer(context)
    assert pair is not None
    assert (pair.certificate, pair.key) == (second.certificate.read_bytes(), second.key.read_bytes())
    assert pair.key.decode() not in repr(pair)
    assert shown(context) == after
    assert files.read_newer(context) is None
    first.key.unlink()
    assert files.read_newer(context) is None
    assert shown(context) == after
