"""Statistics of models as the Open Inference Protocol has them: what all gateways of the server have counted.

A client asks one gateway, and hears of all that answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pliant.core.job import JobId
from pliant.serve.gateway.description import describe_stats
from pliant.serve.gateway.meter import VersionTotals, add_totals
from pliant.serve.gateway.siblings import Siblings
from pliant.serve.gateway.version_service import VersionService


class ModelStatistics:
    """Says what was counted.

    Args:
        siblings: the other gateways; None: there are none, and nothing is waited for.
        unix_ms_of: milliseconds since 1970 when the gateway's clock showed 0.
    """

    def __init__(self, siblings: Siblings | None, unix_ms_of: float) -> None:
        self._siblings = siblings
        self._unix_ms_of = unix_ms_of

    async def describe(self, services: Sequence[VersionService]) -> dict[str, Any]:
        """Return the statistics of versions."""
        others: Mapping[JobId, list[VersionTotals]] = {}
        if self._siblings is not None:
            others = await self._siblings.totals_of([service.version.job_id for service in services])
        return {
            "model_stats": [
                describe_stats(
                    service,
                    add_totals((service.meter.totals, *others.get(service.version.job_id, ()))),
                    self._unix_ms_of,
                )
                for service in services
            ]
        }
