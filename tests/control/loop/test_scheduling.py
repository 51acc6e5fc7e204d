"""A plan is carried out in parts if very many tasks start with it."""

from collections.abc import Callable
from pathlib import Path

from tests.control.conftest import World, packed

from pliant.core.job import JobSpec


def test_very_many_tasks_start_with_several_decisions(tmp_path: Path, make_world: Callable[..., World]) -> None:
    world = make_world(450)
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(packed({"train.py": ""}))
    spec = JobSpec(name="wide", script="train.py", min_tasks=150, max_tasks=150, virtual_workers=150, fixed=True)
    for _ in range(3):
        world.control.requests.submit(spec, archive, "admin")

    started = []
    for _ in range(4):
        world.control.tick()
        started.append(len(world.cluster.orders))

    assert started == [300, 450, 450, 450]  # the second job brings it to 200 and more, the third waits for the next
    assert [len(live.running) for live in world.control.jobs().values()] == [150, 150, 150]
    assert {live.target for live in world.control.jobs().values()} == {150}
