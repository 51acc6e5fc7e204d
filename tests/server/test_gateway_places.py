"""What gateways of other machines say of themselves becomes files that kernels read, if it can be true."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.other_machine import make_certificate

from pliant.core.serving import GatewayHello, KernelEntry
from pliant.serve.protocol.kernel_place import KernelPlace, read_place
from pliant.serve.protocol.pem import MAX_CERTIFICATE
from pliant.server.gateway_places import KernelPlaceFiles

ENTRY = KernelEntry(host="10.0.0.7", port=40123, server_name="gpu3")
HELLO = GatewayHello(number=2, machine="gpu3", kernels=ENTRY, pid=1, http_url="https://gpu3:7312")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_certificate(tmp_path_factory.mktemp("home")).trusted.read_text()


def test_a_place_is_written_once_and_again_when_it_is_another(tmp_path: Path, certificate: str) -> None:
    places, path = KernelPlaceFiles(tmp_path, range(2, 4)), tmp_path / "gateway-2.kernels.json"
    entry = replace(ENTRY, certificate=certificate)
    places.note(replace(HELLO, kernels=entry))
    found = read_place(path)
    assert found == KernelPlace(host="10.0.0.7", port=40123, server_name="gpu3", certificate=certificate)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    before = path.stat().st_ino
    places.note(replace(HELLO, kernels=entry))
    assert path.stat().st_ino == before
    places.note(replace(HELLO, kernels=replace(entry, port=40124)))
    assert read_place(path).port == 40124


def test_files_of_numbers_that_nobody_has_are_removed_and_others_stay(tmp_path: Path) -> None:
    for number in range(1, 16):
        (tmp_path / f"gateway-{number}.kernels.json").touch()
    KernelPlaceFiles(tmp_path, range(2, 4))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"gateway-{n}.kernels.json" for n in (1, 2, 3)]
    KernelPlaceFiles(tmp_path, range(1, 1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("changes", [{"machine": ""}, {"kernels": None}])
def test_gateways_of_the_servers_own_machine_write_their_own(tmp_path: Path, changes: dict[str, Any]) -> None:
    KernelPlaceFiles(tmp_path, range(2, 4)).note(replace(HELLO, **changes))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [-1, 0, 1, 4, 10**9])
def test_numbers_of_others_are_left_alone(tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture) -> None:
    KernelPlaceFiles(tmp_path, range(2, 4)).note(replace(HELLO, number=number))
    assert not list(tmp_path.iterdir())
    assert "those of other machines have the numbers 2 to 3" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"host": ""},
        {"host": "a" * 254},
        {"host": "a\nb"},
        {"port": 0},
        {"port": 65536},
        {"port": True},
        {"server_name": ""},
        {"server_name": "a" * 254},
        {"certificate": "junk"},
        {"certificate": "x" * (MAX_CERTIFICATE + 1)},
        {"certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
    ],
)
def test_what_is_no_place_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any]
) -> None:
    KernelPlaceFiles(tmp_path, range(2, 4)).note(replace(HELLO, kernels=replace(ENTRY, **changes)))
    assert not list(tmp_path.iterdir())
    assert "kernels are not told of the gateway 2 on gpu3" in caplog.text


def test_of_several_certificates_none_counts(tmp_path: Path, certificate: str) -> None:
    two = replace(HELLO, kernels=replace(ENTRY, certificate=2 * certificate))
    KernelPlaceFiles(tmp_path, range(2, 4)).note(two)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    KernelPlaceFiles(tmp_path / "none", range(2, 4)).note(HELLO)
    assert "cannot be written" in caplog.text
