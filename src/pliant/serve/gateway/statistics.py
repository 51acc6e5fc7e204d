"""Statistics of models as the Open Inference Protocol has them: what all gateways of the server have counted.

A client asks one gateway, and hears of all that answer.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pliant.serve.gateway.description import describe_stats
from pliant.serve.gateway.elsewhere import Elsewhere
from pliant.serve.gateway.meter import add_totals
from pliant.serve.gateway.siblings import Siblings
from pliant.serve.gateway.version_service import VersionService


class ModelStatistics:
    """Says what was counted.

    Args:
        siblings: the other gateways of this machine; None: there are none, and nothing is waited for.
        elsewhere: those of other machines; None: the same.
        unix_ms_of: milliseconds since 1970 when the gateway's clock showed 0.
    """

    def __init__(self, siblings: Siblings | None, elsewhere: Elsewhere | None, unix_ms_of: float) -> None:
        self._others = [others for others in (siblings, elsewhere) if others is not None]
        self._unix_ms_of = unix_ms_of

    async def describe(self, services: Sequence[VersionService]) -> dict[str, Any]:
        """Return the statistics of versions."""
        job_ids = [service.version.job_id for service in services]
        said = await asyncio.gather(*(others.totals_of(job_ids) for others in self._others))
        return {
            "model_stats": [
                describe_stats(
                    service,
                    add_totals((service.meter.totals, *(one for others in said for one in others[job_id]))),
                    self._unix_ms_of,
                )
                for service, job_id in zip(services, job_ids, strict=True)
            ]
        }
