"""The server's options for machines that join."""

import argparse
from pathlib import Path

import pytest

from pliant.entry.server.cluster import ClusterSettings, add_cluster, cluster_problems, cluster_settings
from pliant.policy.autoscale.machines import MachineLimits


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


def test_rays_autoscaler_is_asked_for_as_many_machines_as_the_options_say() -> None:
    plain = given("--cluster", "auto", "--ray-machines", "0..8")
    every = given("--cluster", "auto", "--ray-machines=1..1", "--ray-slots=4", "--ray-idle=1h30m")

    assert [list(cluster_problems(options)) for options in (plain, every)] == [[], []]
    assert cluster_settings(plain)["cluster"].limits == MachineLimits(least=0, most=8, idle_s=300.0, num_slots=0)
    assert cluster_settings(every)["cluster"].limits == MachineLimits(least=1, most=1, idle_s=5400.0, num_slots=4)
    assert cluster_settings(given("--cluster", "auto"))["cluster"].limits is None


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
        (["--ray-slots=4"], "--ray-slots", "give --ray-machines as well"),
        (["--ray-idle=5m"], "--ray-idle", "give --ray-machines as well"),
        (["--cluster=agents", "--ray-machines=0..3"], "--ray-machines", "give --cluster auto"),
    ],
)
def test_what_ray_cannot_be_asked_for_is_named(words: list[str], field: str, message: str) -> None:
    (problem,) = cluster_problems(given("--cluster", "auto", *words))

    assert problem.field == field
    assert message in problem.message
