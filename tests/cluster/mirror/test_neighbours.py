"""A large tree comes from another machine that has it, and from the server if that has it not, or lies."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.mirror.conftest import Keeper, Machine
from tests.cluster.mirror.test_bringing import watch

from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.content import FOLDER
from pliant.cluster.mirror.messages import NeighbourAddress
from pliant.cluster.mirror.neighbours import NeighbourConnection, NeighbourServer
from pliant.core.errors import Unavailable
from pliant.core.job import NodeId

LARGE = b"s" * (3 << 20)


@pytest.fixture
def environment(keeper: Keeper) -> Path:
    made = keeper.home / "environments" / "abc"
    made.mkdir(parents=True)
    (made / "large.so").write_bytes(LARGE)
    (made / "small.py").write_text("import torch\n")
    return made


@pytest.fixture
def first(machine: Machine, environment: Path) -> Iterator[Bringer]:
    """Give a machine that has the tree, and hands it out."""
    bringer = machine.bringer()
    bringer.neighbours = NeighbourServer("127.0.0.1", machine.root, bringer.find)
    bringer.bring(machine.connect(environment), machine.tree(environment, is_own=True))
    yield bringer
    bringer.neighbours.close()


def bring(keeper: Keeper, environment: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """Bring the tree to another machine; return what the server had to send."""
    second = keeper.machine("c")
    connection = second.connect(environment)
    fetched = watch(connection, patch)
    second.bringer().bring(connection, second.tree(environment, is_own=True))
    here = second.home / "environments" / "abc"
    assert (here / "large.so").read_bytes() == LARGE
    assert (here / "small.py").read_text() == "import torch\n"
    connection.close()
    return [part.name for part in fetched]


def test_what_a_neighbour_has_the_server_need_not_send(
    keeper: Keeper, environment: Path, first: Bringer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.neighbours is not None
    assert list((keeper.root / "b").glob(".neighbour-*")) == [], "its key is on no disk"

    assert bring(keeper, environment, monkeypatch) == []


def test_what_a_neighbour_has_spoilt_the_server_sends(
    keeper: Keeper, environment: Path, first: Bringer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.neighbours is not None
    for kept in (keeper.root / "b" / "home" / FOLDER).glob("*/*"):
        kept.write_bytes(b"x" * kept.stat().st_size)

    assert sorted(bring(keeper, environment, monkeypatch)) == ["large.so", "small.py"]


def test_a_neighbour_that_is_gone_costs_a_question(
    keeper: Keeper, environment: Path, first: Bringer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.neighbours is not None
    first.neighbours.close()

    assert sorted(bring(keeper, environment, monkeypatch)) == ["large.so", "small.py"]


def test_a_machine_that_was_removed_is_named_to_nobody(
    keeper: Keeper, environment: Path, first: Bringer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.neighbours is not None
    assert keeper.hub is not None
    keeper.files.holders.forget(NodeId("b"))

    assert sorted(bring(keeper, environment, monkeypatch)) == ["large.so", "small.py"]


def test_only_who_may_read_a_tree_gets_of_it_and_only_from_whom_the_server_named(
    machine: Machine, environment: Path, first: Bringer
) -> None:
    assert first.neighbours is not None
    listing = machine.connect(environment).list(str(environment))
    (large,) = (entry.says for entry in listing.entries or () if entry.name == "large.so")
    address = first.neighbours.address

    for tree, key, digest in (
        (listing.digest, "", large),
        (listing.digest, "0" * 64, large),
        ("0" * 64, listing.key, large),
        (listing.digest, listing.key, "../../identity/key.pem"),
    ):
        with (
            closing(NeighbourConnection(address, tree, key)) as neighbour,
            pytest.raises(Unavailable, match="has not what it was said to have"),
        ):
            neighbour.take(digest, 0)
    with closing(NeighbourConnection(address, listing.digest, listing.key)) as neighbour:
        num_bytes, pieces = neighbour.take(large, 1 << 20)
        assert (num_bytes, b"".join(pieces)) == (2 << 20, LARGE[1 << 20 :])
    with pytest.raises(Unavailable, match="is another machine than the server has named"):
        NeighbourConnection(replace(address, pin="0" * 64), listing.digest, listing.key)


def test_a_stranger_who_says_nothing_of_use_is_let_go(first: Bringer) -> None:
    assert first.neighbours is not None
    address: NeighbourAddress = first.neighbours.address
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    with context.wrap_socket(socket.create_connection((address.host, address.port), 5.0)) as sock:
        sock.sendall(b'{"kind": "take-from"}\n')
        assert sock.recv(1) == b""
