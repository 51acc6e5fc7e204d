"""What the server is told on its command line."""

from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput
from pliant.core.server_option import ServerOption
from pliant.entry.server.settings import DEFAULT_LEASE_S, read_settings


def test_the_lease_is_two_seconds_unless_another_is_asked_for() -> None:
    assert read_settings([], {}).lease_s == DEFAULT_LEASE_S == 2.0
    assert read_settings(["--lease-s", "0.5"], {}).lease_s == 0.5


@pytest.mark.parametrize("seconds", ["0", "0.1", "-1", "inf"])
def test_a_lease_that_no_task_could_keep_is_refused(seconds: str) -> None:
    with pytest.raises(InvalidInput, match="--lease-s"):
        read_settings(["--lease-s", seconds], {})


@pytest.mark.parametrize(
    ("argv", "ports"),
    [
        ([], (7312, 7313)),
        (["--port=80"], (81, 82)),
        (["--port=0"], (0, 0)),
        (["--port=65534"], (65535, 0)),
        (["--port=65535"], (0, 0)),
        (["--serve-port=9"], (9, 10)),
        (["--serve-grpc-port=9"], (7312, 9)),
    ],
)
def test_endpoints_are_asked_at_the_next_ports_unless_others_are_given(argv: list[str], ports: tuple[int, int]) -> None:
    found = read_settings(argv, {})
    assert (found.serve_port, found.serve_grpc_port) == ports


@pytest.mark.parametrize("option", ["--serve-port", "--serve-grpc-port"])
def test_a_port_for_endpoints_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match=option):
        read_settings([f"{option}=70000"], {})


def test_labels_are_names_with_values() -> None:
    assert read_settings(["--label", "kind=gpu", "--label", "rack="], {}).labels == {"kind": "gpu", "rack": ""}


@pytest.mark.parametrize("labels", [["kind"], ["a b=c"], ["=gpu"], ["kind=gpu", "kind=cpu"]])
def test_what_is_no_label_is_refused(labels: list[str]) -> None:
    with pytest.raises(InvalidInput, match="--label"):
        read_settings([f"--label={label}" for label in labels], {})


def test_a_server_has_slots_unless_other_machines_have_them() -> None:
    assert read_settings(["--slots", "0", "--cluster", "agents", "--tls"], {}).num_slots == 0
    with pytest.raises(InvalidInput, match="--cluster"):
        read_settings(["--slots", "0"], {})
    with pytest.raises(InvalidInput, match="-1 is out of range; give 0 to 4096"):
        read_settings(["--slots", "-1", "--cluster", "agents", "--tls"], {})


def test_every_option_is_shown_with_its_value_and_where_it_came_from(tmp_path: Path) -> None:
    argv = ["--slots=8", "--policy=fairshare", "--label=kind=gpu", "--label=rack=", "--tls-key=/k", "--tls-cert=/c"]
    env = {"PLIANT_HOME": str(tmp_path), "PLIANT_DATABASE": "postgresql://ann:hunter2@db/pliant?password=hunter3"}
    options = {one.name: one for one in read_settings(argv, env).options}
    assert options["--slots"] == ServerOption(name="--slots", value="8", source="option")
    assert options["--label"] == ServerOption(name="--label", value="kind=gpu,rack=", source="option")
    assert options["--policy"].source == "default", "it was given, and says nothing new"
    assert options["--home"] == ServerOption(name="--home", value=str(tmp_path), source="environment")
    assert options["--database"] == ServerOption(
        name="--database", value="postgresql://ann@db/pliant", source="environment"
    )
    assert options["--tls-key"].value == "(hidden)"
    assert options["--standby"] == ServerOption(name="--standby", value="", source="default")
    assert "hunter" not in repr(options)
    assert not {"--login-fd", "--reset-admin"} & options.keys()


def test_results_are_copied_where_the_operator_says_and_nowhere_by_default(tmp_path: Path) -> None:
    assert read_settings([], {}).results_to is None
    assert read_settings(["--results-to=s3://bucket/pliant"], {}).results_to == "s3://bucket/pliant"
    for url in ("/mnt/results", "s3://key:secret@bucket", f"file://{tmp_path}/home/copies", f"file://{tmp_path}/home"):
        with pytest.raises(InvalidInput, match="--results-to"):
            read_settings([f"--home={tmp_path}/home", f"--results-to={url}"], {})
    assert read_settings([f"--home={tmp_path}/home", f"--results-to=file://{tmp_path}/home2"], {}).results_to


def test_an_address_of_ipv6_may_be_given_as_it_stands_in_a_url() -> None:
    found = read_settings(["--host=[fd00:d5::1]", "--tls", "--tls-name=[fd00::7]"], {})

    assert (found.host, found.tls and found.tls.names) == ("fd00:d5::1", ("fd00::7", "fd00:d5::1"))


def test_an_address_that_holds_on_one_link_only_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'fe80::1%eth0' holds on one link only"):
        read_settings(["--host=fe80::1%eth0", "--tls"], {})
