"""Keeps the audit log while the server runs: writes what was counted, and forgets refusals that are old.

Refused requests can come from anybody, as many as they like. So they alone have a time to be kept without any rule of
retention; a rule for the audit log holds for them, too, in the place of it.
"""

import asyncio
import logging
import math
from typing import Final

from starlette.concurrency import run_in_threadpool

from pliant.core.errors import PliantError
from pliant.core.upkeep import Material
from pliant.server.context import Context
from pliant.server.middleware.audit import write_entries
from pliant.server.middleware.refusals import RefusalCounts

log = logging.getLogger(__name__)

REFUSALS_KEPT_S: Final = 30 * 86400.0
"""So long a refused request without a name is kept, unless a rule says otherwise."""
_LOOK_S: Final = 1.0
_FORGET_S: Final = 3600.0


async def keep_audit(context: Context, refusals: RefusalCounts) -> None:
    """Keep the audit log until cancelled; what is counted then is written, too."""
    forget_at = -math.inf
    try:
        while True:
            now = context.clock.now()
            if entries := refusals.end_minute(now):
                await run_in_threadpool(write_entries, context.audit, entries)
            if now >= forget_at:
                forget_at = now + _FORGET_S
                await run_in_threadpool(forget_refusals, context)
            await asyncio.sleep(_LOOK_S)
    finally:
        write_entries(context.audit, refusals.end_minute(math.inf))


def forget_refusals(context: Context) -> None:
    """Remove refused requests without a name that are older than they are kept."""
    try:
        rules = context.upkeep.rules().noun.rules
        ages_s = [rule.max_age_s for rule in rules if rule.material is Material.AUDIT]
        kept_s = next((age_s for age_s in ages_s if age_s is not None), REFUSALS_KEPT_S)
        context.audit.forget_refusals(before=context.clock.now() - kept_s)
    except PliantError:
        log.exception("old refusals could not be removed from the audit log; it is tried again in an hour")
