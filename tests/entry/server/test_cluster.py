"""The server's options for machines that join."""

import argparse
from pathlib import Path

import pytest

from pliant.entry.server.cluster import ClusterSettings, add_cluster, cluster_problems, cluster_settings
from pliant.policy.autoscale.machines import MachineKind


def given(*words: str, tls: bool = True) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_cluster(parser)
    parser.set_defaults(tls=tls, tls_cert=None)
    return parser.parse_args(words)


def test_without_the_option_no_machine_may_join() -> None:
    assert cluster_settings(given()) == {}
    assert list(cluster_problems(given(tls=False))) == []


def test_all_has_a_default() -> None:
    options = given("--cluster", "agents")

    assert list(cluster_problems(options)) == []
    assert cluster_settings(options) == {"cluster": ClusterSettings(port=7314, interface="auto", orphan_s=60.0)}


def test_options_are_taken() -> None:
    options = given("--cluster", "agents", "--agent-port", "0", "--interface", "ib0", "--orphan-s", "5")

    assert list(cluster_problems(options)) == []
    assert cluster_settings(options) == {"cluster": ClusterSettings(port=0, interface="ib0", orphan_s=5.0)}


def test_the_server_s_own_machine_is_called_and_kept_as_is_said() -> None:
    options = given("--cluster", "agents", "--machine-name", "gpu1", "--agent-dir", "/var/own")

    assert list(cluster_problems(options)) == []
    settings = cluster_settings(options)["cluster"]
    assert (settings.machine_name, settings.agent_dir) == ("gpu1", Path("/var/own"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--machine-name", "gpu1"), "here no other machine may join"),
        (("--cluster", "auto", "--agent-dir", "/var/own"), "Ray starts the agent, under the name of its host"),
        (("--cluster", "agents", "--machine-name", "local"), "'local' is no name for a machine that joins"),
    ],
)
def test_what_is_said_of_the_server_s_own_machine_and_is_of_no_use_is_refused(
    words: tuple[str, ...], said: str
) -> None:
    assert any(said in problem.message for problem in cluster_problems(given(*words)))


def test_folders_that_all_machines_see_are_taken_if_they_are_there(tmp_path: Path) -> None:
    options = given("--cluster", "agents", "--shared", str(tmp_path), "--shared", "/")
    assert list(cluster_problems(options)) == []
    assert cluster_settings(options)["cluster"].shared == (tmp_path, Path("/"))

    (problem,) = cluster_problems(given("--cluster", "agents", "--shared", str(tmp_path / "none")))
    assert "is no folder; mount it, or make it" in problem.message
    (problem,) = cluster_problems(given("--shared", str(tmp_path)))
    assert "no other machine may join" in problem.message


def test_state_between_machines_is_encrypted_if_that_is_asked_for() -> None:
    options = given("--cluster", "agents", "--encrypt-state")
    assert list(cluster_problems(options)) == []
    assert cluster_settings(options)["cluster"].encrypt_state

    (problem,) = cluster_problems(given("--encrypt-state"))
    assert "no other machine may join" in problem.message


def test_machines_join_over_tls_only() -> None:
    (problem,) = cluster_problems(given("--cluster", "agents", tls=False))

    assert problem.field == "--cluster"
    assert "--tls" in problem.message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("--agent-port", "-1", "-1 is out of range"),
        ("--agent-port", "65536", "65536 is out of range"),
        ("--orphan-s", "4.9", "4.9 is out of range"),
        ("--orphan-s", "1e9", "1e+09 is out of range"),
        ("--orphan-s", "nan", "nan is out of range"),
    ],
)
def test_what_is_out_of_range_is_named(name: str, value: str, words: str) -> None:
    (problem,) = cluster_problems(given("--cluster", "agents", f"{name}={value}"))

    assert problem.field == name
    assert words in problem.message


@pytest.mark.parametrize(
    ("cluster", "ray"),
    [("agents", ""), ("auto", "auto"), ("ray://head:6379", "head:6379"), ("ray://[fd::1]:1", "[fd::1]:1")],
)
def test_agents_are_started_on_the_ray_that_is_named(cluster: str, ray: str) -> None:
    options = given("--cluster", cluster)

    assert list(cluster_problems(options)) == []
    assert cluster_settings(options)["cluster"].ray == ray


@pytest.mark.parametrize(
    "cluster", ["ray", "", "ray://", "ray://head", "ray://:6379", "ray://head:x", "http://head:6379"]
)
def test_what_is_no_cluster_is_refused(cluster: str) -> None:
    (problem,) = cluster_problems(given("--cluster", cluster))

    assert problem.field == "--cluster"
    assert "ray://HOST:PORT" in problem.message


@pytest.mark.parametrize("cluster", ["auto", "ray://head:6379"])
def test_where_ray_is_not_installed_the_command_says_how(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.entry.server.cluster.find_spec", lambda _name: None)

    (problem,) = cluster_problems(given("--cluster", cluster))

    assert "pip install 'pliant[ray]'" in problem.message


def kinds(*words: str) -> tuple[MachineKind, ...]:
    options = given("--cluster", "auto", *words)
    assert list(cluster_problems(options)) == []
    return cluster_settings(options)["cluster"].kinds


def test_rays_autoscaler_is_asked_for_as_many_machines_as_the_options_say() -> None:
    assert kinds() == ()
    assert kinds("--ray-machines", "0..8") == (MachineKind(least=0, most=8, idle_s=300.0, num_slots=0),)
    every = kinds("--ray-machines=1..1", "--ray-slots=4", "--ray-idle=1h30m")
    assert every == (MachineKind(least=1, most=1, idle_s=5400.0, num_slots=4),)


def test_kinds_of_machines_have_names_labels_and_what_else_is_said_of_each() -> None:
    gpu = "gpu=0..8,slots=8,gpus=8,cpus=96,idle=10m,label=gpu=a100,label=zone=b"
    cpu, gpus = kinds("--ray-machines=cpu=1..20", f"--ray-machines={gpu}", "--ray-slots=4", "--ray-idle=1m")
    assert cpu == MachineKind(name="cpu", least=1, most=20, idle_s=60.0, num_slots=4, labels={"kind": "cpu"})
    assert gpus == MachineKind(
        name="gpu",
        least=0,
        most=8,
        idle_s=600.0,
        num_slots=8,
        labels={"kind": "gpu", "gpu": "a100", "zone": "b"},
        num_gpus=8,
        num_cpus=96,
    )


@pytest.mark.parametrize(
    ("words", "field", "message"),
    [
        (["--ray-machines=8"], "--ray-machines", "'8' says no numbers of machines"),
        (["--ray-machines=2..1"], "--ray-machines", "give the least and the most"),
        (["--ray-machines=0..1001"], "--ray-machines", "1000 at most"),
        (["--ray-machines=٠..٣"], "--ray-machines", "says no numbers"),
        (["--ray-machines=0..3", "--ray-slots=0"], "--ray-slots", "0 is out of range"),
        (["--ray-machines=0..3", "--ray-idle=soon"], "--ray-idle", "'soon' is no length of time"),
        (["--ray-machines=0..3", "--ray-idle=0.5s"], "--ray-idle", "'0.5s' is out of range"),
        (["--ray-machines=a,b=0..3"], "--ray-machines", "says no numbers"),
        (["--ray-machines=0..3,slots=x"], "--ray-machines", "slots='x' is out of range; give 1 to 4096"),
        (["--ray-machines=0..3,gpus=-1"], "--ray-machines", "gpus='-1' is out of range; give 0 to 4096"),
        (["--ray-machines=0..3,solts=4"], "--ray-machines", "'solts' is not known of machines; give slots=N"),
        (["--ray-machines=0..3,"], "--ray-machines", "'' is not known of machines"),
        (["--ray-machines=0..3,slots=4,slots=4"], "--ray-machines", "something is given twice"),
        (["--ray-machines=0..3,idle=never"], "--ray-machines", "'never' is no length of time"),
        (["--ray-machines=0..3,label=a100"], "--ray-machines", "'a100' is no label; give NAME=VALUE"),
        (["--ray-machines=0..3,label"], "--ray-machines", "'' is no label"),
        (["--ray-machines=0..3,label=a=1,label=a=2"], "--ray-machines", "a: given twice"),
        (["--ray-machines=gpu=0..3", "--ray-machines=gpu=0..4"], "--ray-machines", "'gpu' is given twice"),
        (["--ray-machines=0..3", "--ray-machines=0..4"], "--ray-machines", "two kinds have no name"),
        (["--ray-slots=4"], "--ray-slots", "give --ray-machines as well"),
        (["--ray-idle=5m"], "--ray-idle", "give --ray-machines as well"),
        (["--cluster=agents", "--ray-machines=0..3"], "--ray-machines", "give --cluster auto"),
    ],
)
def test_what_ray_cannot_be_asked_for_is_named(words: list[str], field: str, message: str) -> None:
    (problem,) = cluster_problems(given("--cluster", "auto", *words))

    assert problem.field == field
    assert message in problem.message
