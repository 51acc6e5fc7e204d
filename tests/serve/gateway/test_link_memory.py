"""Who is cut when connections hold too much: always one of whoever holds most."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from pliant.serve.gateway.link_memory import LinkMemory


@dataclass(eq=False)
class Link:
    owner: str
    num_bytes: int = 0
    is_cut: bool = False

    def cut(self) -> None:
        self.is_cut, self.num_bytes = True, 0


def test_the_largest_connection_of_whoever_holds_most_is_cut_and_nobody_else_is() -> None:
    memory = LinkMemory(100)
    mine, others = Link("ada", 50), [Link("bob", 20), Link("bob", 25)]
    for link in (mine, *others):
        memory.note(link)
    assert not any(link.is_cut for link in (mine, *others))

    more = Link("bob", 24)
    memory.note(more)

    assert [link.is_cut for link in (mine, *others, more)] == [False, False, True, False]
    assert memory.num_bytes == 94


def test_what_was_read_meanwhile_does_not_count() -> None:
    memory = LinkMemory(100)
    link, other = Link("ada", 90), Link("bob", 20)
    memory.note(link)
    link.num_bytes = 0

    memory.note(other)

    assert not link.is_cut
    assert not other.is_cut
    assert memory.num_bytes == 20


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=40))
def test_the_sum_is_what_they_hold_and_never_too_much(changes: list[tuple[int, int]]) -> None:
    memory = LinkMemory(100)
    links = [Link(f"user {number % 3}") for number in range(6)]
    for number, num_bytes in changes:
        if not links[number].is_cut:
            links[number].num_bytes = num_bytes
            memory.note(links[number])
        assert memory.num_bytes == sum(link.num_bytes for link in links) <= 100
