"""What is said when machines come and go."""

from pliant.control.loop.machine_news import machine_news
from pliant.core.job import NodeId
from pliant.core.plan import NodeView


def node(name: str, num_slots: int = 2, *, away: bool = False) -> NodeView:
    return NodeView(id=NodeId(name), slots=tuple(range(num_slots)), away=away)


OWN = node("local")


def test_at_the_first_look_nothing_is_news() -> None:
    assert list(machine_news([], [OWN, node("gpu1")])) == []


def test_nothing_is_said_of_what_stays_as_it_is() -> None:
    both = [OWN, node("gpu1", away=True)]

    assert list(machine_news(both, both)) == []


def test_a_machine_that_joins_is_there_once_it_has_said_what_it_is() -> None:
    named = node("gpu1", 0)

    assert list(machine_news([OWN], [OWN, named])) == []
    assert list(machine_news([OWN, named], [OWN, node("gpu1", 1)])) == [("gpu1", "gpu1 is there, with 1 slot")]
    assert list(machine_news([OWN], [OWN, node("gpu1")])) == [("gpu1", "gpu1 is there, with 2 slots")]


def test_a_machine_goes_and_comes_back() -> None:
    here, away = [OWN, node("gpu1")], [OWN, node("gpu1", 0, away=True)]

    ((name, words),) = machine_news(here, away)
    assert name == "gpu1"
    assert words.startswith("nothing is heard of gpu1 any more")
    assert list(machine_news(away, here)) == [("gpu1", "gpu1 is there, with 2 slots")]


def test_of_a_machine_that_is_away_when_it_is_first_seen_nothing_is_said() -> None:
    assert list(machine_news([OWN], [OWN, node("gpu1", away=True)])) == []
