"""People's code gets the variables of a list, and what an operator names."""

import pytest

from pliant.isolation.variables import allowed, refusal

SERVERS = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "THP_MEM_ALLOC_ENABLE": "0",
    "NCCL_DEBUG": "INFO",
    "NCCL_NET_TOKEN": "s3cr3t",
    "AWS_SECRET_ACCESS_KEY": "s3cr3t",
    "HTTPS_PROXY": "http://ada:s3cr3t@proxy",
    "LD_PRELOAD": "/evil.so",
    "SSH_AUTH_SOCK": "/run/agent",
    "PLIANT_DATABASE": "postgresql://ada:s3cr3t@db/pool",
    "WANDB_API_KEY": "s3cr3t",
}


def test_only_harmless_variables_are_passed_on() -> None:
    harmless = {"PATH": "/bin", "LC_ALL": "C.UTF-8", "THP_MEM_ALLOC_ENABLE": "0", "NCCL_DEBUG": "INFO"}
    assert allowed(SERVERS) == harmless


def test_an_operator_passes_on_what_they_name_but_nothing_of_pliants() -> None:
    passed = allowed(SERVERS, ("WANDB_API_KEY", "PLIANT_DATABASE"))

    assert passed["WANDB_API_KEY"] == "s3cr3t"
    assert "PLIANT_DATABASE" not in passed


@pytest.mark.parametrize("name", ["*_KEY", "", "PLIANT_DATABASE", "A=B", "1ST"])
def test_a_pattern_or_a_name_of_pliants_is_refused(name: str) -> None:
    assert refusal(name)


def test_a_whole_name_is_not() -> None:
    assert refusal("WANDB_API_KEY") == ""
