"""How many entries of the audit log strangers can make, and what those tell."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.registry import AuditEntry
from pliant.server.middleware.refusals import MINUTE_S, NUM_ALL, NUM_ANONYMOUS, NUM_COUNTED, NUM_NAMED, RefusalCounts

LOG_ON = "log on"
PER_MINUTE = 2 * NUM_ALL + NUM_COUNTED + 1
"""Entries of all callers without a name, at most."""


def refused(
    at: float, *, who: str = "", address: str = "10.0.0.1", action: str = "GET /x", target: str = ""
) -> AuditEntry:
    return AuditEntry(at=at, who=who, action=action, target=target, status=401, address=address)


def number_in(entry: AuditEntry) -> int:
    """Return how many requests an entry stands for."""
    return int(entry.action.split(" ")[0].replace(",", "")) if " more refused" in entry.action else 1


def test_1500_anonymous_requests_of_a_minute_leave_eleven_entries() -> None:
    counts = RefusalCounts(LOG_ON)
    written = [entry for number in range(1500) for entry in counts.admit(refused(number * 0.03))]
    written += counts.end_minute(MINUTE_S)
    assert [entry.action for entry in written] == ["GET /x"] * NUM_ANONYMOUS + ["1,490 more refused: GET /x"]
    assert (written[-1].address, written[-1].status) == ("10.0.0.1", 401)
    assert counts.end_minute(MINUTE_S) == ()


def test_log_ons_are_told_apart_by_account_and_hidden_behind_no_other_requests() -> None:
    counts = RefusalCounts(LOG_ON)
    for _ in range(500):
        counts.admit(refused(1.0))
    written = [entry for name in ("ada", "bob") for entry in counts.admit(refused(2.0, action=LOG_ON, target=name))]
    assert [(entry.action, entry.target) for entry in written] == [(LOG_ON, "ada"), (LOG_ON, "bob")]
    for _ in range(NUM_ANONYMOUS + 2):
        counts.admit(refused(3.0, action=LOG_ON, target="ada"))
    told = [(entry.action, entry.target) for entry in counts.end_minute(MINUTE_S)]
    assert ("3 more refused: log on", "ada") in told


def test_who_is_known_is_named_in_the_count() -> None:
    counts = RefusalCounts(LOG_ON)
    written = [entry for _ in range(NUM_NAMED + 7) for entry in counts.admit(refused(0.0, who="ada"))]
    assert len(written) == NUM_NAMED
    (more,) = counts.end_minute(MINUTE_S)
    assert (more.who, more.action) == ("ada", "7 more refused: GET /x")


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["", "", "ada"]), st.integers(0, 400), st.sampled_from(["GET /x", LOG_ON]), st.floats(0, 9)
    ),
    max_size=300,
)


@given(REQUESTS)
def test_every_request_is_written_or_counted_once_and_those_without_a_name_are_few(
    requests: list[tuple[str, int, str, float]],
) -> None:
    counts, now = RefusalCounts(LOG_ON), 0.0
    written: list[AuditEntry] = []
    for who, address, action, pause in requests:
        now += pause
        written += counts.admit(refused(now, who=who, address=f"10.0.{address >> 8}.{address & 255}", action=action))
    written += counts.end_minute(now + MINUTE_S)
    assert sum(number_in(entry) for entry in written) == len(requests)
    assert sum(not entry.who for entry in written) <= PER_MINUTE * (now // MINUTE_S + 2)
    assert sum(number_in(entry) for entry in written if entry.who) == sum(bool(who) for who, *_ in requests)


def test_from_however_many_addresses_memory_and_entries_are_bounded() -> None:
    counts, numbers = RefusalCounts(LOG_ON), count()
    addresses = (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in numbers)
    written = [entry for _ in range(5000) for entry in counts.admit(refused(0.0, address=next(addresses)))]
    written += counts.end_minute(MINUTE_S)
    assert len(written) <= PER_MINUTE
    assert sum(number_in(entry) for entry in written) == 5000
    assert "more refused, from other addresses" in written[-1].action
