"""Local clusters in folders of their own, with real tasks."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.cluster import NUM_SLOTS
from tests.contracts.process_stage import ENTRY, NODE, PATHS, ProcessStage

from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.channel import AgentThread
from pliant.cluster.node import NodeCluster


class WallClock:
    def now(self) -> float:
        return time.time()


@pytest.fixture
def bring_up() -> Iterator[Callable[..., ProcessStage[NodeCluster]]]:
    """Give a function that brings up a cluster in a folder: `bring_up(root, env, **settings)`."""
    stages: list[ProcessStage[NodeCluster]] = []

    def make(root: Path, env: Mapping[str, str] | None = None, **settings: Any) -> ProcessStage[NodeCluster]:
        chosen: dict[str, Any] = {"num_slots": NUM_SLOTS, "preload": (), "entry": ENTRY, **settings}
        agent = AgentThread(
            AgentSettings(node_id=NODE, state_dir=root / "agent", **chosen),
            clock=WallClock(),
            base_env={**os.environ, "PYTHONPATH": PATHS, "PLIANT_SECRET": "of the server", **(env or {})},
        )
        cluster = NodeCluster(agent)
        stages.append(ProcessStage(cluster=cluster, root=root))
        return stages[-1]

    yield make
    for stage in stages:
        stage.end()


@pytest.fixture
def stage(tmp_path: Path, bring_up: Callable[..., ProcessStage[NodeCluster]]) -> ProcessStage[NodeCluster]:
    return bring_up(tmp_path)
