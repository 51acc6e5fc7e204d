"""Whatever connections break, an agent receives every message once and in order."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster.agent.messages import TO_AGENT, Close, Kill
from pliant.cluster.joined.outbox import Outbox
from pliant.cluster.json_lines import decode
from pliant.core.job import TaskId


class Agent:
    """An agent's end, as `NodeLink` counts."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.wire: deque[bytes] = deque()
        self.received = 0
        self.next = 1
        self.got: list[str] = []
        self._write = self.wire.append

    def connect(self) -> None:
        self.wire = deque()
        self._write = self.wire.append
        self.outbox.attach(self._write, self._welcome, received=self.received)

    def lose(self) -> None:
        self.outbox.detach(self._write)
        self.wire = deque()

    def read(self, num: int) -> None:
        for _ in range(min(num, len(self.wire))):
            for line in self.wire.popleft().splitlines():
                if line.startswith(b"welcome "):
                    self.next = int(line.split()[1])
                    continue
                number, self.next = self.next, self.next + 1
                if number > self.received:
                    self.received = number
                    message = decode(line, TO_AGENT)
                    assert isinstance(message, Kill)
                    self.got.append(message.task_id)

    @staticmethod
    def _welcome(first: int) -> bytes:
        return f"welcome {first}\n".encode()


STEP = st.one_of(
    st.sampled_from(["send", "connect", "lose", "confirm"]), st.integers(min_value=1, max_value=3).map(lambda n: n)
)


@given(st.lists(STEP, max_size=60))
def test_every_message_arrives_once_and_in_order(steps: list[str | int]) -> None:
    outbox = Outbox("key")
    agent = Agent(outbox)
    sent: list[str] = []
    for step in steps:
        match step:
            case "send":
                sent.append(f"job-1.{len(sent)}")
                outbox.send(Kill(task_id=TaskId(sent[-1])))
            case "connect":
                agent.connect()
            case "lose":
                agent.lose()
            case "confirm":
                outbox.confirm(agent.received)
            case int():
                agent.read(step)
        assert agent.got == sent[: len(agent.got)]
    agent.connect()
    agent.read(len(agent.wire))

    assert agent.got == sent


def test_what_was_ordered_before_an_agent_was_given_up_never_arrives() -> None:
    outbox = Outbox("key")
    outbox.send(Kill(task_id=TaskId("job-1.1")))
    outbox.drop()
    outbox.send(Kill(task_id=TaskId("job-1.2")))
    agent = Agent(outbox)
    agent.connect()
    outbox.send(Kill(task_id=TaskId("job-1.3")))
    agent.read(2)

    assert agent.got == ["job-1.3"]


def test_an_agent_of_another_machine_is_not_ended_with_its_server() -> None:
    outbox = Outbox("key")
    agent = Agent(outbox)
    agent.connect()
    outbox.send(Close())
    outbox.close()
    outbox.send(Kill(task_id=TaskId("job-1.1")))

    assert len(agent.wire) == 1


def test_an_older_connection_that_ends_later_takes_nothing_from_the_newer_one() -> None:
    outbox = Outbox("key")
    agent = Agent(outbox)
    agent.connect()
    old = agent._write
    agent.connect()
    outbox.detach(old)
    outbox.send(Kill(task_id=TaskId("job-1.1")))
    agent.read(2)

    assert agent.got == ["job-1.1"]
