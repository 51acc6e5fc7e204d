"""Who is left out when machines do not reach each other, and for how long they are kept apart."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import NodeId, TaskId
from pliant.policy.elastic.paths import (
    FIRST_S,
    FORGET_S,
    MAX_EXACT,
    MAX_KEPT,
    MOST_S,
    BrokenPath,
    Ends,
    PathMember,
    avoided,
    ends_of,
    leave_out,
    next_trial,
    remember,
    try_again,
)

A, B, C, D = (NodeId(name) for name in "abcd")


def crew(places: str, states: str = "") -> list[PathMember]:
    """Return one member on each of these machines, in rank order; those on `states` hold a state."""
    return [
        PathMember(id=TaskId(f"job-1.{number}"), node_id=NodeId(name), holds_state=name in states)
        for number, name in enumerate(places, 1)
    ]


def remaining(members: Sequence[PathMember], *broken: str, suspected: Sequence[str] = ()) -> str:
    out = leave_out(members, {pair(ends) for ends in broken}, {pair(ends) for ends in suspected})
    return "".join(member.node_id for member in members if member.id not in out)


def pair(names: str) -> Ends:
    return ends_of(NodeId(names[0]), NodeId(names[1]))


@pytest.mark.parametrize(
    ("places", "states", "broken", "left"),
    [
        ("abc", "abc", ["bc"], "ab"),
        ("abcc", "abc", ["bc"], "acc"),
        ("abcc", "b", ["bc"], "ab"),
        ("ab", "", ["ab"], "a"),
        ("abcd", "abcd", ["ab", "ac", "ad"], "bcd"),
        ("abcd", "abcd", ["ab", "cd"], "ac"),
        ("abc", "abc", ["ad"], "abc"),
        ("abc", "abc", [], "abc"),
    ],
    ids=[
        "whoever comes first remains",
        "more members remain",
        "a state remains though fewer do",
        "one of two",
        "the one that reaches nobody goes, though it leads",
        "of each path one end",
        "a machine of another training",
        "all reach each other",
    ],
)
def test_as_few_as_can_be_are_left_out(places: str, states: str, broken: list[str], left: str) -> None:
    assert remaining(crew(places, states), *broken) == left


def test_one_that_perhaps_reaches_nobody_is_left_out_rather_than_the_first_that_misses_it() -> None:
    members = crew("abc", "abc")
    assert remaining(members, "ab") == "ac"
    assert remaining(members, "ab", suspected=["ac"]) == "bc"
    assert remaining(members, suspected=["ab", "ac"]) == "abc", "nobody goes for a suspicion"
    assert remaining(crew("aabc", "abc"), "ab", suspected=["ac"]) == "aac"


nodes = st.sampled_from([NodeId(f"n{number:02}") for number in range(MAX_EXACT + 4)])
members_ = st.lists(st.tuples(nodes, st.booleans()), min_size=1, max_size=24).map(
    lambda found: [
        PathMember(id=TaskId(f"job-1.{number}"), node_id=node, holds_state=holds)
        for number, (node, holds) in enumerate(found)
    ]
)
paths_ = st.sets(st.tuples(nodes, nodes).filter(lambda both: both[0] < both[1]), max_size=30)


@given(members=members_, broken=paths_, suspected=paths_)
def test_all_that_remain_reach_each_other_with_a_state_and_nobody_is_left_out_in_vain(
    members: list[PathMember], broken: set[Ends], suspected: set[Ends]
) -> None:
    out = leave_out(members, broken, suspected)
    kept = {member.node_id for member in members if member.id not in out}
    gone = {member.node_id for member in members if member.id in out}
    assert kept
    assert not kept & gone, "a machine stays or goes whole"
    assert not any(ends in broken for ends in combinations(sorted(kept), 2))
    assert all(any(ends_of(node, other) in broken for other in kept) for node in gone)
    if any(member.holds_state for member in members):
        assert any(member.holds_state for member in members if member.id not in out)
    assert leave_out(members, sorted(broken), sorted(suspected, reverse=True)) == out


@given(data=st.data())
def test_no_other_choice_keeps_more_members(data: st.DataObject) -> None:
    few = st.sampled_from([A, B, C, D, NodeId("e"), NodeId("f")])
    found = data.draw(st.lists(st.tuples(few, st.booleans()), min_size=1, max_size=9))
    members = [
        PathMember(id=TaskId(f"job-1.{number}"), node_id=node, holds_state=holds)
        for number, (node, holds) in enumerate(found)
    ]
    broken = data.draw(st.sets(st.tuples(few, few).filter(lambda both: both[0] < both[1]), max_size=8))
    places = sorted({member.node_id for member in members})
    out = leave_out(members, broken)
    holders = [member for member in members if member.holds_state]
    for num in range(len(places) + 1):
        for some in combinations(places, num):
            if any(ends in broken for ends in combinations(some, 2)):
                continue
            if holders and not any(member.node_id in some for member in holders):
                continue
            assert sum(member.node_id in some for member in members) <= len(members) - len(out)


def test_the_time_doubles_as_long_as_the_path_is_found_broken_again() -> None:
    known: tuple[BrokenPath, ...] = ()
    now, waits = 100.0, []
    for _ in range(7):
        known = remember(known, {pair("cd")}, {D}, now)
        assert avoided(known, {A, C}) == {D: C}
        waits.append(known[0].wait_s)
        now = next_trial(known) or 0.0
        assert now == known[0].until
        known = try_again(known, now)
        assert next_trial(known) is None
        assert avoided(known, {A, C}) == {}
        now += 8.0
    assert waits == [FIRST_S, 40.0, 80.0, 160.0, MOST_S, MOST_S, MOST_S]
    now += FORGET_S
    assert remember(known, {pair("cd")}, {D}, now)[0].wait_s == FIRST_S


def test_what_is_found_twice_at_once_is_found_once() -> None:
    once = remember((), {pair("cd")}, {D}, 100.0)
    again = remember(once, {pair("cd")}, {C}, 101.0)
    assert [(path.wait_s, path.until, path.left_out, path.other) for path in again] == [(FIRST_S, 121.0, C, D)]


def test_no_more_paths_are_kept_than_a_few_hundred() -> None:
    many = {ends_of(NodeId(f"x{one}"), NodeId(f"y{one}")) for one in range(MAX_KEPT + 50)}
    known = remember((), many, (), 1.0)
    assert len(known) == MAX_KEPT
    newest = remember(known, {pair("ab")}, {B}, 2.0)
    assert len(newest) == MAX_KEPT
    assert newest[-1].ends == pair("ab")


@given(
    paths=st.lists(st.tuples(nodes, nodes, st.booleans()).filter(lambda one: one[0] != one[1]), max_size=12),
    held=st.sets(nodes, max_size=6),
)
def test_no_task_is_started_where_it_would_join_two_that_do_not_reach_each_other(
    paths: list[tuple[NodeId, NodeId, bool]], held: set[NodeId]
) -> None:
    known = tuple(
        BrokenPath(ends=ends_of(one, other), left_out=one, wait_s=20.0, until=20.0, is_over=is_over)
        for one, other, is_over in paths
    )
    found = avoided(known, held)
    assert not found.keys() & held
    for path in known:
        if not path.is_over and not set(path.ends) <= held:
            assert set(path.ends) & found.keys(), "one end at least is avoided"
    for node, other in found.items():
        assert any(path.ends == ends_of(node, other) and not path.is_over for path in known)
