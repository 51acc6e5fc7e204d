"""Orders that a machine cannot carry out, though another one may."""

from pathlib import Path

import pytest

from pliant.cluster.agent.orders import MisfitError, check_environment
from pliant.cluster.agent.settings import AgentSettings
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder

SETTINGS = AgentSettings(
    node_id=NodeId("arm"),
    state_dir=Path("/agent"),
    strange_environments={"/home/environments": "it was built for x86_64, and this machine is aarch64"},
)


def order(python: str | None) -> StartOrder:
    return StartOrder(
        task_id=TaskId("job-1.1"),
        node_id=NodeId("arm"),
        slots=(0,),
        argv=(),
        env={},
        cwd="/",
        log_dir="",
        python=python,
    )


def test_an_environment_that_was_built_for_another_kind_of_machine_is_refused_with_the_reason() -> None:
    with pytest.raises(MisfitError) as refused:
        check_environment(order("/home/environments/0123456789abcdef/venv/bin/python"), SETTINGS)
    assert str(refused.value) == (
        "the environment 0123456789ab does not work on this machine: it was built for x86_64, and this machine is "
        "aarch64"
    )


@pytest.mark.parametrize("python", [None, "/usr/bin/python3", "/home/environments-of-mine/venv/bin/python"])
def test_any_other_interpreter_is_taken(python: str | None) -> None:
    check_environment(order(python), SETTINGS)
