"""What becomes of tasks when an agent, its link, or the server is gone for a while, or for good."""

import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests.cluster.joined.pool import AgentProcess, Pool
from tests.cluster.joined.proxy import Proxy
from tests.contracts.cluster import NUM_SLOTS
from tests.contracts.process_stage import NODE, ProcessStage, until

from pliant.cluster import process
from pliant.cluster.agent.messages import Kill, Start
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.json_lines import MAX_LINE_BYTES
from pliant.cluster.zygote import deadline
from pliant.core.errors import Unavailable
from pliant.core.job import NodeId, TaskId
from pliant.core.plan import NodeView

ALL_SLOTS = tuple(range(NUM_SLOTS))
Stage = ProcessStage[ClusterOfNodes]


def test_tasks_of_an_agent_that_was_killed_are_adopted_and_what_was_ordered_meanwhile_is_done(pool: Pool) -> None:
    agent = pool.add()
    stage = pool.stage()
    exits = stage.exits()
    goes_on, ends = stage.start("job-1.1", (0,)), stage.start("job-1.2", (1,))
    pids = [stage.pid_of(one) for one in (goes_on, ends)]

    agent.kill()
    stage.finish(ends, 6)
    until(lambda: process.stamp(pids[1]) is None, "one task ends while nobody watches")
    meanwhile = stage.start("job-1.3", (2,))
    agent.start()

    assert stage.exit_of(ends, exits).exit_code == 6
    assert stage.pid_of(goes_on) == pids[0]
    stage.finish(meanwhile, 7)
    assert stage.exit_of(meanwhile, exits).exit_code == 7
    stage.finish(goes_on, 8)
    assert stage.exit_of(goes_on, exits).exit_code == 8
    assert len(exits) == 3


def test_the_memory_limit_of_a_task_outlives_the_agent_that_started_it(pool: Pool) -> None:
    agent = pool.add()
    stage = pool.stage()
    exits = stage.exits()
    hog = """
import signal, time
while not (folder / "go").exists():
    time.sleep(0.01)
x = b"1" * (300 << 20)
signal.pause()
"""
    order = replace(stage.order(TaskId("job-1.1"), (0,), hog), memory_bytes=150 << 20)
    stage.cluster.start(order)
    stage.pid_of(order.task_id)
    agent.kill()
    agent.start()
    stage.pid_of(order.task_id)
    (stage.folder(order.task_id) / "go").touch()

    ended = stage.exit_of(order.task_id, exits)
    assert ended.exit_code == -9
    assert re.fullmatch(r"used [0-9]+ MiB of memory, more than its limit of 150 MiB, and .*", ended.cause), ended.cause
    assert ended.facts.out_of_memory


def test_the_next_server_gets_an_account_and_what_it_does_not_know_is_ended(pool: Pool) -> None:
    pool.add()
    first = pool.stage()
    known, unknown, ended = (first.start(f"job-1.{n}", (n,)) for n in range(3))
    pids = {one: first.pid_of(one) for one in (known, unknown, ended)}
    tasks = {one.task_id: one for one in first.cluster.observe().tasks}
    pool.stop()
    first.finish(ended, 6)
    until(lambda: process.stamp(pids[ended]) is None, "a task ends while there is no server")

    pool.begin({NODE: (tasks[known], tasks[ended])})
    (node,) = [one for one in pool.nodes.observe().nodes if one.id == NODE]
    assert node.away or node.slots == ALL_SLOTS
    second = pool.stage()
    exits = second.exits()

    assert second.exit_of(ended, exits).exit_code == 6
    until(lambda: process.stamp(pids[unknown]) is None, "what the server does not know is killed")
    until(lambda: [one.task_id for one in second.cluster.observe().tasks] == [known], "its slot is free")
    again = second.start("job-2.1", (1,))
    second.finish(again, 4)
    assert second.exit_of(again, exits).exit_code == 4
    assert second.pid_of(known) == pids[known]
    second.finish(known, 5)
    assert second.exit_of(known, exits).exit_code == 5
    assert {one.task_id for one in exits} == {ended, again, known}


def test_a_link_that_is_cut_for_a_second_is_no_loss(pool: Pool, proxy: Proxy) -> None:
    agent = pool.add(port=proxy.port)
    stage = pool.stage()
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,))
    pid = stage.pid_of(task_id)

    proxy.hold()
    assert _is_here_for(pool, 1.0)
    proxy.release()
    assert _is_here_for(pool, 0.7)

    assert not exits
    assert stage.pid_of(task_id) == pid
    assert agent.process.poll() is None
    assert NODE not in pool.nodes.silent_nodes()


def test_a_link_that_is_reset_is_dialled_again_at_once(pool: Pool, proxy: Proxy) -> None:
    pool.add(port=proxy.port)
    stage = pool.stage()
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,))
    before = len(proxy.wires)
    proxy.reset()

    assert _is_here_for(pool, 0.5)
    until(lambda: len(proxy.wires) > before, "it is dialled again")
    stage.finish(task_id, 3)
    assert stage.exit_of(task_id, exits).exit_code == 3


def test_a_second_connection_is_dialled_when_the_first_is_late(pool: Pool, proxy: Proxy) -> None:
    pool.add(port=proxy.port)
    stage = pool.stage()
    exits = stage.exits()
    before = len(proxy.wires)
    proxy.wires[-1].is_whole.clear()
    task_id = stage.start("job-1.1", (0,))

    assert _is_here_for(pool, 2.5)
    assert len(proxy.wires) > before
    stage.finish(task_id, 3)
    assert stage.exit_of(task_id, exits).exit_code == 3


@pytest.mark.slow
def test_a_machine_that_is_cut_off_is_away_and_offers_only_what_is_held(pool: Pool, proxy: Proxy) -> None:
    pool.add(port=proxy.port)
    stage = pool.stage()
    exits = stage.exits()
    task_id = stage.start("job-1.1", (1, 2))
    pid = stage.pid_of(task_id)

    proxy.hold()
    until(lambda: NODE in pool.nodes.silent_nodes(), "it is silent")
    until(lambda: _node(pool).away, "it is away")
    assert _node(pool).slots == (1, 2)
    assert [one.task_id for one in pool.nodes.observe().tasks] == [task_id]
    ordered = stage.start("job-1.2", (0,))
    assert _node(pool).slots == (0, 1, 2)
    _pass(2.0)
    assert not stage.running(ordered)
    proxy.release()

    until(lambda: pool.is_here(), "it is back")
    assert _node(pool).slots == ALL_SLOTS
    assert stage.pid_of(task_id) == pid
    stage.finish(ordered, 5)
    assert stage.exit_of(ordered, exits).exit_code == 5
    assert len(exits) == 1


def test_a_server_that_is_not_sure_to_lead_prolongs_nobodys_life(open_pool: Callable[..., Pool]) -> None:
    pool = open_pool(orphan_s=2.0)
    pool.add()
    stage = pool.stage()
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,))
    stage.pid_of(task_id)
    pool.is_sure = False

    ended = stage.exit_of(task_id, exits)
    assert ended.went_with_its_machine, "nobody is to blame"
    assert "reached no server" in ended.cause
    assert not ended.facts.out_of_memory


def test_an_agent_that_waits_for_no_server_ends_with_its_tasks_and_the_next_one_tells_why_they_ended(
    open_pool: Callable[..., Pool],
) -> None:
    pool = open_pool(orphan_s=2.0)
    machine = pool.add(options=["--patience-s", "2"])
    task_id = pool.stage().start("job-1.1", (0,))
    (task,) = pool.nodes.observe().tasks
    pid = pool.stage().pid_of(task_id)
    pool.stop()

    until(lambda: machine.process.poll() is not None, "it ends")
    assert process.stamp(pid) is None
    machine.start()
    until(lambda: machine.process.poll() is not None, "the next one finds no server, and ends as well")
    pool.begin({NodeId(NODE): (task,)})
    machine.start()
    stage = pool.stage()
    ended = stage.exit_of(task_id, stage.exits())
    assert ended.went_with_its_machine
    assert "reached no server" in ended.cause


def is_free(pool: Pool, name: str) -> bool:
    return all(one.node_id != name for one in pool.nodes.observe().tasks)


@pytest.mark.slow
def test_tasks_end_at_the_orphan_time_and_exit_only_after_that(open_pool: Callable[..., Pool]) -> None:
    pool = open_pool(orphan_s=2.0)
    proxy = Proxy(pool.port)
    pool.add("cut", port=proxy.port)
    stopped = pool.add("stopped")
    stages = {name: pool.stage(name) for name in ("cut", "stopped")}
    exits = pool_exits = stages["cut"].exits()
    tasks = {name: stage.start(f"job-{name}.1", (0,)) for name, stage in stages.items()}
    pids = {name: stage.pid_of(tasks[name]) for name, stage in stages.items()}
    began = time.monotonic()
    proxy.hold()
    stopped.process.send_signal(signal.SIGSTOP)

    until(lambda: process.stamp(pids["cut"]) is None, "the agent ends its task")
    assert time.monotonic() - began > 1.4
    until(lambda: process.stamp(pids["stopped"]) is None, "the zygote ends the task of an agent that is stopped")
    assert 3.4 < time.monotonic() - began < 8.0
    assert not exits
    assert len(pool.nodes.observe().tasks) == 2
    for name, task_id in tasks.items():
        ended = stages[name].exit_of(task_id, pool_exits)
        assert (ended.exit_code, ended.error) == (None, "")
        assert "nothing was heard" in ended.cause
    assert time.monotonic() - began > 11.0
    with pytest.raises(Unavailable, match="nothing is heard"):
        stages["cut"].start("job-cut.2", (1,))

    proxy.release()
    stopped.process.send_signal(signal.SIGCONT)
    for name, stage in stages.items():
        until(partial(pool.is_here, name), f"{name} is back")
        until(partial(is_free, pool, name), "its slots are free")
        again = stage.start(f"job-{name}.3", ALL_SLOTS)
        stage.finish(again, 1)
        assert stage.exit_of(again, exits).exit_code == 1
    assert len(exits) == 4
    proxy.close()


@pytest.mark.slow
def test_an_agent_begins_again_with_the_rules_of_a_later_server_and_its_tasks_go_on(pool: Pool) -> None:
    agent = AgentProcess(pool=pool, name=NODE, port=pool.port, is_cold=True)
    pool.agents.append(agent)
    agent.start()
    stage = pool.stage()
    task_id = stage.start("job-1.1", (0,))
    pid = stage.pid_of(task_id)
    (task,) = stage.cluster.observe().tasks
    pool.stop()
    pool.orphan_s, pool.max_log_bytes = 30.0, 1 << 30
    pool.begin({NODE: (task,)})
    until(lambda: agent.log().count("serves the server") == 2, "it begins again")
    second = pool.stage()
    exits = second.exits()

    assert agent.process.poll() is None
    assert second.pid_of(task_id) == pid
    second.finish(task_id, 4)
    assert second.exit_of(task_id, exits).exit_code == 4
    at = deadline.read(agent.folder / deadline.FILE)
    assert at is not None
    assert at <= deadline.boot_time() + 30.0


def test_an_agent_starts_no_task_on_a_slot_that_is_held_whatever_the_server_believes(pool: Pool) -> None:
    pool.add()
    stage = pool.stage()
    exits = stage.exits()
    first = stage.start("job-1.1", (0,))
    wrong = [stage.order(TaskId(name), slots) for name, slots in (("job-1.2", (0,)), ("job-1.3", (9,)))]
    outbox = pool.nodes.greet(NODE).outbox
    for order in wrong:
        outbox.send(Start(order=order))
    stage.pass_time()
    outbox.send(Kill(task_id=first))

    assert stage.exit_of(first, exits).exit_code == -9
    assert not any(stage.running(order.task_id) for order in wrong)


def test_a_message_that_is_too_long_is_refused_before_anything_is_started(pool: Pool) -> None:
    pool.add()
    stage = pool.stage()
    order = stage.order(TaskId("job-1.1"), (0,), "x" * MAX_LINE_BYTES)

    with pytest.raises(ValueError, match="longer than"):
        stage.cluster.start(order)
    assert stage.cluster.observe().tasks == ()


def _node(pool: Pool) -> NodeView:
    (node,) = [one for one in pool.nodes.observe().nodes if one.id == NODE]
    return node


def _is_here_for(pool: Pool, seconds: float, name: NodeId = NODE) -> bool:
    """Tell whether a machine is there all the time."""
    until_at, there = time.monotonic() + seconds, True
    until(lambda: not (there and pool.is_here(name)) or time.monotonic() > until_at, "time passes")
    return pool.is_here(name) and time.monotonic() > until_at


def _pass(seconds: float) -> None:
    at = time.monotonic() + seconds
    until(lambda: time.monotonic() > at, "time passes")
