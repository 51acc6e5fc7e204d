"""Machines that have joined, as people see them: away, and removed."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.control.requests.test_machines import TwoMachines

from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.errors import Conflict, NotFound
from pliant.core.event import EventKind
from pliant.core.joining import JoinedMachine
from pliant.core.machine import MachineDrain, MachineLabels, SlotExclusion


@dataclass
class Links:
    """The links of a server that takes machines: which are here, and what was forgotten."""

    here: set[str] = field(default_factory=set)
    forgotten: list[str] = field(default_factory=list)


@pytest.fixture
def links() -> Links:
    return Links(here={"a"})


@pytest.fixture
def two(tmp_path: Path, links: Links) -> Iterator[TwoMachines]:
    """The server's own machine is b; a has joined and is here, gpu9 has joined and is away."""
    world = TwoMachines(tmp_path)
    numbers = itertools.count(1)
    joining = Joining(
        registry=world.store.registry, now=world.clock.now, token_hex=lambda size: f"{next(numbers):0{2 * size}x}"
    )
    for name in ("a", "gpu9"):
        joining.note(
            JoinedMachine(
                name=name, owner="ada", fingerprint="ab" * 32, joined_at=5.0, slots=(0, 1), labels={"rack": "7"}
            )
        )
    world.control.inquiries.machines.joining = JoiningRoom(
        joining=joining,
        pin=lambda: "2d" * 32,
        address=lambda: "10.0.0.1:7312",
        is_here=links.here.__contains__,
        forget=links.forgotten.append,
    )
    with closing(world.store):
        yield world


def states(world: TwoMachines) -> dict[str, str]:
    return {one.name: one.state for one in world.control.inquiries.machines.page(None).machines}


def test_a_machine_that_has_joined_and_is_not_here_is_away(two: TwoMachines) -> None:
    assert states(two) == {"a": "in use", "b": "in use", "gpu9": "away"}
    away = two.control.inquiries.machines.label("gpu9", {"zone": "b"}, "ada", None)
    assert (away.slots, dict(away.labels)) == ((), {"rack": "7", "zone": "b"})
    two.control.inquiries.machines.out_of_use.drain("gpu9", "ada")
    drained = two.control.inquiries.machines.get("gpu9", None)
    assert (drained.state, drained.drained_by) == ("away", "ada")


def test_a_machine_that_has_copies_says_so_also_while_it_is_away(two: TwoMachines) -> None:
    joining = two.control.inquiries.machines.joining
    assert joining is not None
    joining.joining.note(replace(next(one for one in joining.joining.all() if one.name == "gpu9"), has_copies=True))
    (a,) = (node for node in two.cluster.observe().nodes if node.id == "a")
    two.cluster.add_node(replace(a, has_copies=True))
    found = {one.name: one.files for one in two.control.inquiries.machines.page(None).machines}
    assert found == {"a": "copied", "b": "shared", "gpu9": "copied"}


def test_a_machine_whose_link_is_gone_is_away_though_its_slots_are_kept(two: TwoMachines, links: Links) -> None:
    links.here.clear()
    assert states(two) == {"a": "away", "b": "in use", "gpu9": "away"}
    assert len(two.control.inquiries.machines.get("a", None).slots) == 4


def test_a_machine_that_is_away_is_removed_with_all_that_is_known_of_it(two: TwoMachines, links: Links) -> None:
    machines, registry = two.control.inquiries.machines, two.store.registry
    machines.out_of_use.drain("gpu9", "ada")
    machines.out_of_use.exclude("gpu9", None, "its fan", "ada")
    machines.labels.set("gpu9", {"rack": "8"}, "ada")
    machines.remove("gpu9", "ben")
    assert states(two) == {"a": "in use", "b": "in use"}
    assert links.forgotten == ["gpu9"]
    for kind in (JoinedMachine, MachineDrain, MachineLabels, SlotExclusion):
        assert registry.get(kind, "gpu9") is None
    assert two.said(EventKind.MACHINE_CHANGED)[-1].startswith("gpu9 was removed by ben")
    with pytest.raises(NotFound):
        machines.remove("gpu9", "ben")
    two.restart()
    assert "gpu9" not in states(two)


def test_a_machine_that_is_here_is_removed_when_it_is_drained_and_empty(two: TwoMachines, links: Links) -> None:
    machines = two.control.inquiries.machines
    job_id = two.submit(fixed=True, min_tasks=8, max_tasks=8, virtual_workers=8)
    two.settle(2.0)
    with pytest.raises(Conflict, match="a is in use; drain it with `pliant machines drain a`"):
        machines.remove("a", "ada")
    machines.out_of_use.drain("a", "ada")
    with pytest.raises(Conflict, match="a is draining"):
        machines.remove("a", "ada")
    assert links.forgotten == []
    for task in two.tasks(job_id):
        two.exit(task.id, 0)
    two.settle(2.0)
    machines.remove("a", "ada")
    assert links.forgotten == ["a"]


def test_the_servers_own_machine_is_not_removed(two: TwoMachines) -> None:
    with pytest.raises(Conflict, match="b has not joined this pool"):
        two.control.inquiries.machines.remove("b", "ada")


def test_a_server_that_takes_no_machines_says_so(tmp_path: Path) -> None:
    world = TwoMachines(tmp_path)
    with closing(world.store), pytest.raises(Conflict, match="was not started with --cluster"):
        world.control.inquiries.machines.remove("a", "ada")
