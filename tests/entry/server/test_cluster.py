"""The server's options for machines that join."""

import argparse

import pytest

from pliant.entry.server.cluster import ClusterSettings, add_cluster, cluster_problems, cluster_settings


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
