"""The same local clusters as those of `tests.cluster`."""

from tests.cluster.conftest import bring_up, stage

__all__ = ["bring_up", "stage"]
