"""A pool whose tasks are on machines that have joined does all that one machine does."""

from collections.abc import Iterator

import pytest
from tests.cluster.joined.pool import Pool
from tests.contracts.cluster import ClusterContract
from tests.contracts.process_stage import NODE, ProcessStage

from pliant.cluster.joined.nodes import ClusterOfNodes

Stage = ProcessStage[ClusterOfNodes]


class TestOneMachine(ClusterContract):
    """The stage is the only machine that has joined; the server's own node is idle."""

    @pytest.fixture
    def stage(self, pool: Pool) -> Iterator[Stage]:
        pool.add()
        stage = pool.stage()
        yield stage
        stage.end()


@pytest.mark.slow
class TestThreeMachines(ClusterContract):
    """The stage is one of three."""

    @pytest.fixture
    def stage(self, pool: Pool) -> Iterator[Stage]:
        for name in ("before", NODE, "zone-2.after"):
            pool.add(name)
        for name in ("before", "zone-2.after"):
            pool.stage(name)
        stage = pool.stage()
        yield stage
        stage.end()
