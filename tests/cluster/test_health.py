"""An adapter knows when its agent, or the zygote of that, is stuck, and says so in words."""

from collections.abc import Callable

import pytest

from pliant.cluster.agent.messages import Alive, FromAgent, Measured, NodeFound, ToAgent, UpToDate
from pliant.cluster.node import NodeCluster
from pliant.core.job import NodeId
from pliant.core.machine import MachineFacts, MeasuredMachine
from pliant.core.plan import NodeView


class PlayedAgent:
    """A channel to an agent that says what the test says."""

    def __init__(self) -> None:
        self.now = 100.0
        self.deliver: Callable[[FromAgent | None], None] = lambda _: None

    def open(self, deliver: Callable[[FromAgent | None], None]) -> None:
        self.deliver = deliver
        deliver(NodeFound(node=NodeView(id=NodeId("here"), slots=(0,))))
        deliver(UpToDate())

    def send(self, message: ToAgent) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def agent() -> PlayedAgent:
    return PlayedAgent()


def test_an_agent_that_says_nothing_is_stuck_until_it_speaks(agent: PlayedAgent) -> None:
    cluster = NodeCluster(agent, monotonic=lambda: agent.now)
    agent.now += 9
    assert cluster.trouble() == ""
    agent.now += 3
    assert cluster.trouble().startswith("the agent that starts tasks has not looked at them for 12 s; see")
    agent.deliver(Alive())
    assert cluster.trouble() == ""


def test_a_zygote_that_does_not_answer_is_stuck(agent: PlayedAgent) -> None:
    cluster = NodeCluster(agent, monotonic=lambda: agent.now)
    agent.deliver(Alive(zygote_silent_s=9.0))
    assert cluster.trouble() == ""
    agent.deliver(Alive(zygote_silent_s=13.0))
    assert cluster.trouble().startswith("the zygote that forks tasks has not answered for 13 s; see")


def test_an_agent_that_is_gone_is_trouble(agent: PlayedAgent) -> None:
    cluster = NodeCluster(agent, monotonic=lambda: agent.now)
    agent.deliver(None)
    assert cluster.trouble() == "the agent of its node has ended"


def test_facts_of_the_machine_are_the_newest_and_grow_old(agent: PlayedAgent) -> None:
    cluster = NodeCluster(agent, monotonic=lambda: agent.now)
    assert cluster.measured() == {}
    agent.deliver(Measured(facts=MachineFacts(load=1.0)))
    agent.now += 4
    agent.deliver(Measured(facts=MachineFacts(load=2.0)))
    agent.now += 5
    assert cluster.measured() == {"here": MeasuredMachine(facts=MachineFacts(load=2.0), age_s=5.0)}
