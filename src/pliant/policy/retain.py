"""What is removed, and why: things of ended jobs by age first, then by size, those of the longest ended job first.

The logs of a job that alone hold more than half of what all may hold go before those of others, which they would drive
out. Entries of the audit log go by age.
"""

from collections.abc import Iterable, Sequence

from pliant.core.upkeep import Holding, Material, Removal, Rule

_DAY_S = 86_400.0


def removals(holdings: Iterable[Holding], rules: Sequence[Rule], now: float) -> tuple[Removal, ...]:
    """Return what the rules remove, in the order in which the jobs ended.

    Things that hold nothing are never named, so that a clean-up which follows another one finds nothing to do.
    """
    by_rule = {rule.material: rule for rule in rules}
    found = []
    held = sorted((h for h in holdings if h.num_bytes > 0), key=lambda h: (h.ended_at, h.job_id, h.material))
    for material, rule in by_rule.items():
        mine = [holding for holding in held if holding.material is material]
        mine.sort(key=lambda holding: not _drives_out_others(holding, rule))
        left = sum(holding.num_bytes for holding in mine)
        for holding in mine:
            why = _too_old(holding, rule, now) or _too_much(left, rule)
            if why:
                left -= holding.num_bytes
                found.append((holding, why))
    found.sort(key=lambda each: (each[0].ended_at, each[0].job_id, each[0].material))
    return tuple(
        Removal(job_id=holding.job_id, material=holding.material, num_bytes=holding.num_bytes, why=why)
        for holding, why in found
    )


def forgotten_before(rules: Sequence[Rule], now: float) -> float:
    """Return the instant before which entries of the audit log are removed; 0 if all are kept."""
    ages_s = (rule.max_age_s for rule in rules if rule.material is Material.AUDIT)
    return max((now - age_s for age_s in ages_s if age_s is not None), default=0.0)


def _drives_out_others(holding: Holding, rule: Rule) -> bool:
    if rule.material is not Material.LOGS or rule.max_bytes is None:
        return False
    return holding.num_bytes > rule.max_bytes / 2


def _too_old(holding: Holding, rule: Rule, now: float) -> str:
    age_s = now - holding.ended_at
    if rule.max_age_s is None or age_s <= rule.max_age_s:
        return ""
    return f"its job ended {age_s / _DAY_S:.1f} days ago; {rule.material} are kept for {rule.max_age_s / _DAY_S:g} days"


def _too_much(left: int, rule: Rule) -> str:
    if rule.max_bytes is None or left <= rule.max_bytes:
        return ""
    return f"all {rule.material} together are {left:,} bytes; {rule.max_bytes:,} are kept, the newest"
