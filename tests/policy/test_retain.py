"""What a clean-up removes."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import JobId
from pliant.core.upkeep import Holding, Material, Rule
from pliant.policy.retain import forgotten_before, removals

DAY_S = 86_400.0


def held(job: int, ended_at: float, num_bytes: int = 10, material: Material = Material.LOGS) -> Holding:
    return Holding(job_id=JobId(f"job-{job}"), material=material, num_bytes=num_bytes, ended_at=ended_at)


def test_without_rules_everything_is_kept() -> None:
    assert removals([held(1, 0.0)], (), now=1e12) == ()


def test_what_is_too_old_goes_and_says_why() -> None:
    rules = [Rule(material=Material.LOGS, max_age_s=2 * DAY_S)]
    (removal,) = removals([held(1, 0.0), held(2, DAY_S)], rules, now=3 * DAY_S)
    assert removal.job_id == "job-1"
    assert removal.why == "its job ended 3.0 days ago; logs are kept for 2 days"


def test_the_longest_ended_go_until_the_rest_is_small_enough() -> None:
    rules = [Rule(material=Material.LOGS, max_bytes=25)]
    given_ = [held(3, 3.0), held(1, 1.0), held(2, 2.0), held(1, 1.0, 1000, Material.RESULTS)]
    assert [removal.job_id for removal in removals(given_, rules, now=9.0)] == ["job-1"]


def test_logs_that_would_drive_out_all_others_go_before_them() -> None:
    rules = [Rule(material=Material.LOGS, max_bytes=100), Rule(material=Material.RESULTS, max_bytes=100)]
    older = [held(number, float(number), 10) for number in range(1, 6)]
    assert [r.job_id for r in removals([*older, held(6, 6.0, 4650)], rules, now=9.0)] == ["job-6"]
    assert [r.job_id for r in removals([*older, held(6, 6.0, 60)], rules, now=9.0)] == ["job-6"]
    assert [r.job_id for r in removals([*older, held(6, 6.0, 50), held(7, 7.0, 10)], rules, now=9.0)] == ["job-1"]
    results = [held(1, 1.0, 30, Material.RESULTS), held(2, 2.0, 90, Material.RESULTS)]
    assert [r.job_id for r in removals(results, rules, now=9.0)] == ["job-1"]  # the newest model is not the one to go


def test_age_and_size_count_together() -> None:
    rules = [Rule(material=Material.LOGS, max_age_s=5.0, max_bytes=10)]
    given_ = [held(1, 0.0), held(2, 8.0), held(3, 9.0)]
    found = removals(given_, rules, now=10.0)
    assert [(r.job_id, r.why.split(" ")[0]) for r in found] == [("job-1", "its"), ("job-2", "all")]


def test_the_audit_log_goes_by_its_own_rule_and_stays_without_one() -> None:
    logs = Rule(material=Material.LOGS, max_age_s=DAY_S)
    assert forgotten_before([logs], now=9 * DAY_S) == 0.0
    assert forgotten_before([logs, Rule(material=Material.AUDIT, max_bytes=0)], now=9 * DAY_S) == 0.0
    assert forgotten_before([logs, Rule(material=Material.AUDIT, max_age_s=2 * DAY_S)], now=9 * DAY_S) == 7 * DAY_S


HOLDINGS = st.lists(
    st.builds(held, st.integers(1, 9), st.floats(0, 100), st.integers(0, 50), st.sampled_from(Material)), max_size=30
)
LIMITS = st.none() | st.integers(0, 200)


@given(HOLDINGS, LIMITS, LIMITS)
def test_what_is_left_keeps_to_the_rule_and_nothing_is_removed_in_vain(
    holdings: list[Holding], age_s: int | None, size: int | None
) -> None:
    holdings = list({(h.job_id, h.material): h for h in holdings}.values())
    rules = [Rule(material=Material.LOGS, max_age_s=age_s, max_bytes=size)]
    found = removals(holdings, rules, now=100.0)
    gone = {(r.job_id, r.material) for r in found}
    left = [h for h in holdings if (h.job_id, h.material) not in gone and h.num_bytes]
    logs = [h for h in left if h.material is Material.LOGS]
    assert {r.material for r in found} <= {Material.LOGS}
    assert size is None or sum(h.num_bytes for h in logs) <= size
    assert age_s is None or all(100.0 - h.ended_at <= age_s for h in logs)
    assert removals(left, rules, now=100.0) == ()
    if age_s is None and size is not None and found:
        removed = [h for h in holdings if (h.job_id, h.material) in gone]
        newest = max(removed, key=lambda h: h.ended_at)
        assert sum(h.num_bytes for h in logs) + newest.num_bytes > size
