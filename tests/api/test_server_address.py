"""Where the server is."""

import json
import ssl
import time
from pathlib import Path

import pytest

from pliant.api.server_address import ServerAddress
from pliant.api.trust import Trust, websocket_url
from pliant.core.errors import InvalidInput
from pliant.entry.server.tls import Tls, TlsSettings, prepare

GIVEN = "http://127.0.0.1:7311"


def test_without_a_file_it_is_where_the_task_was_told() -> None:
    assert ServerAddress(GIVEN).url() == GIVEN


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"url": 3}', '{"url": "ftp://x"}', "{}"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "server.json"
    if content is not None:
        file.write_text(content)
    assert ServerAddress(GIVEN, file).url() == GIVEN


def test_the_newest_file_counts_and_the_last_one_after_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    where = ServerAddress(GIVEN, file)
    for port in (1001, 1002):
        draft = tmp_path / "draft"
        draft.write_text(json.dumps({"url": f"https://127.0.0.1:{port}", "pid": 1}))
        draft.replace(file)
        assert where.url() == f"https://127.0.0.1:{port}"
    file.unlink()
    assert where.url() == "https://127.0.0.1:1002"


def test_links_speak_over_the_same_address() -> None:
    assert websocket_url("http://h:1") == "ws://h:1"
    assert websocket_url("https://h:1") == "wss://h:1"


def test_the_certificate_is_the_one_that_goes_with_the_address(tmp_path: Path) -> None:
    first, second = (_made(tmp_path / name) for name in ("one", "two"))
    file = tmp_path / "server.json"
    where = ServerAddress("https://127.0.0.1:1", file, Trust(certificate=first.trusted, server_name="localhost"))
    assert where.server_name() == "localhost"
    assert [_believes(where, tls) for tls in (first, second)] == [True, False]
    file.write_text(json.dumps({"url": "https://127.0.0.1:2", "certificate": str(second.trusted)}))
    assert (where.url(), where.server_name()) == ("https://127.0.0.1:2", None)
    assert [_believes(where, tls) for tls in (first, second)] == [False, True]
    second.trusted.write_bytes(first.trusted.read_bytes())
    assert _believes(where, first), "a renewed certificate is read at the next connection"
    second.trusted.unlink()
    with pytest.raises(InvalidInput, match="PLIANT_CA"):
        where.tls()
    plain = ServerAddress(GIVEN, None, Trust(certificate=first.trusted, server_name="localhost"))
    assert (plain.tls(), plain.server_name()) == (None, None)


def _made(home: Path) -> Tls:
    home.mkdir()
    return prepare(TlsSettings(), home, now=time.time())


def _believes(where: ServerAddress, tls: Tls) -> bool:
    """Shake hands in memory with a server that has this certificate."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(tls.certificate, tls.key)
    ours = where.tls()
    assert ours is not None
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ours.wrap_bio(down, up, server_hostname=where.server_name() or "127.0.0.1")
    server = theirs.wrap_bio(up, down, server_side=True)
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for end in (client, server):
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return True
