"""The contracts of `Registry` and `AuditLog`: what every implementation does.

Subclass `RegistryContract` and `AuditContract` and give them the fixtures `registry` and `audit`.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from pliant.core.errors import Conflict, NotFound, Stale
from pliant.core.registry import AuditEntry, AuditLog, Kept, Registry
from pliant.core.upkeep import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A noun with a little of everything."""

    KIND: ClassVar[str] = "thing"

    name: str
    owner: str = "ada"
    size: int | None = None
    parts: tuple[str, ...] = ()
    labels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A noun of another kind."""

    KIND: ClassVar[str] = "other"

    name: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A noun of a kind whose names people choose and read."""

    KIND: ClassVar[str] = "dataset"

    name: str
    owner: str = ""


class RegistryContract:
    """What a caller may rely on."""

    def test_a_noun_comes_back_as_it_was_added(self, registry: Registry) -> None:
        thing = Thing(name="größe/1", size=3, parts=("a", "b"), labels={"x": 0.5})
        kept = registry.add(thing, at=7.5)
        assert kept == Kept(noun=thing, revision=1, created_at=7.5, changed_at=7.5)
        assert registry.get(Thing, "größe/1") == kept
        assert registry.get(Thing, "other") is None
        assert registry.get(Other, "größe/1") is None

    def test_a_name_is_taken_once_in_its_kind(self, registry: Registry) -> None:
        registry.add(Thing(name="one"), at=1.0)
        registry.add(Other(name="one"), at=1.0)
        with pytest.raises(Conflict, match="there is a thing 'one' already"):
            registry.add(Thing(name="one", size=9), at=2.0)
        kept = registry.get(Thing, "one")
        assert kept is not None
        assert (kept.noun.size, kept.revision) == (None, 1)

    def test_no_two_names_of_people_differ_only_by_capital_letters(self, registry: Registry) -> None:
        registry.add(Named(name="Data"), at=1.0)
        for twin in ("data", "DATA"):
            with pytest.raises(Conflict, match="only by capital letters"):
                registry.add(Named(name=twin), at=2.0)
        with pytest.raises(Conflict, match="already"):
            registry.add(Named(name="Data"), at=2.0)
        assert registry.list(Named, limit=9)[0].noun.name == "Data"
        registry.remove(Named, "Data")
        registry.add(Named(name="data"), at=3.0)
        registry.add(Thing(name="one"), at=1.0)
        registry.add(Thing(name="ONE"), at=1.0)

    def test_a_change_counts_up_and_keeps_when_it_was_made(self, registry: Registry) -> None:
        registry.add(Thing(name="one"), at=1.0)
        changed = registry.replace(Thing(name="one", owner="bob", size=2), at=3.0)
        assert changed == Kept(noun=Thing(name="one", owner="bob", size=2), revision=2, created_at=1.0, changed_at=3.0)
        assert registry.get(Thing, "one") == changed
        assert [kept.noun.name for kept in registry.list(Thing, owner="bob")] == ["one"]
        assert registry.list(Thing, owner="ada") == ()

    def test_who_read_an_older_one_is_told(self, registry: Registry) -> None:
        registry.add(Thing(name="one"), at=1.0)
        registry.replace(Thing(name="one", size=1), at=2.0, revision=1)
        with pytest.raises(Stale, match="at revision 2, not 1"):
            registry.replace(Thing(name="one", size=2), at=3.0, revision=1)
        with pytest.raises(Stale):
            registry.remove(Thing, "one", revision=1)
        kept = registry.get(Thing, "one")
        assert kept is not None
        assert kept.noun.size == 1

    def test_what_is_not_there_cannot_be_changed_or_removed(self, registry: Registry) -> None:
        with pytest.raises(NotFound, match="no thing 'one'"):
            registry.replace(Thing(name="one"), at=1.0)
        with pytest.raises(NotFound):
            registry.remove(Thing, "one")

    def test_a_removed_name_is_free_again(self, registry: Registry) -> None:
        registry.add(Thing(name="one"), at=1.0)
        registry.remove(Thing, "one", revision=1)
        assert registry.get(Thing, "one") is None
        assert registry.add(Thing(name="one"), at=2.0).revision == 1

    def test_lists_are_in_order_and_come_in_pages(self, registry: Registry) -> None:
        names = ["b", "B", "a-b", "a.c", "a", "ab", "_x", "Z"]
        for name in names:
            registry.add(Thing(name=name), at=1.0)
        registry.add(Other(name="c"), at=1.0)
        found: list[str] = []
        while page := registry.list(Thing, after=found[-1] if found else "", limit=3):
            found += [kept.noun.name for kept in page]
        assert found == sorted(names)

    def test_a_part_of_a_name_finds_it_and_no_sign_stands_for_another(self, registry: Registry) -> None:
        for name in ("Digits", "my_digits", "my-digits", "100%", "other"):
            registry.add(Thing(name=name, owner="bob" if name == "my-digits" else "ada"), at=1.0)

        def found(part: str, **how: Any) -> list[str]:
            return [kept.noun.name for kept in registry.list(Thing, part=part, **how)]

        assert found("DIGITS") == ["Digits", "my-digits", "my_digits"]
        assert (found("y_d"), found("%"), found("_"), found("/")) == (["my_digits"], ["100%"], ["my_digits"], [])
        assert found("digits", owner="ada", after="Digits", limit=1) == ["my_digits"]

    def test_the_newest_come_first_and_in_pages(self, registry: Registry) -> None:
        for at, name in ((1.0, "b"), (3.0, "a"), (2.0, "c"), (2.0, "d")):
            registry.add(Thing(name=name), at=at)
        registry.replace(Thing(name="b", size=1), at=9.0)
        registry.add(Other(name="x"), at=5.0)
        found = registry.newest(Thing, before=None, limit=2)
        assert [kept.noun.name for kept in found] == ["a", "d"]
        assert [kept.noun.name for kept in registry.newest(Thing, before=(2.0, "d"), limit=9)] == ["c", "b"]

    def test_of_many_who_change_at_once_one_wins_each_revision(self, registry: Registry) -> None:
        registry.add(Thing(name="one", size=0), at=0.0)
        won: list[int] = []

        def change() -> None:
            for _ in range(20):
                kept = registry.get(Thing, "one")
                assert kept is not None
                try:
                    size = (kept.noun.size or 0) + 1
                    won.append(registry.replace(replace(kept.noun, size=size), at=1.0, revision=kept.revision).revision)
                except Stale:
                    continue

        threads = [threading.Thread(target=change) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = registry.get(Thing, "one")
        assert kept is not None
        assert sorted(won) == list(range(2, len(won) + 2))
        assert kept.noun.size == len(won) == kept.revision - 1

    def test_of_many_who_add_a_name_one_has_it(self, registry: Registry) -> None:
        added: list[int] = []

        def add(number: int) -> None:
            try:
                registry.add(Thing(name="one", size=number), at=1.0)
            except Conflict:
                return
            added.append(number)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = registry.get(Thing, "one")
        assert kept is not None
        assert [kept.noun.size] == added


class AuditContract:
    """What a caller may rely on."""

    def test_entries_come_newest_first_and_in_pages(self, audit: AuditLog) -> None:
        written = [
            audit.append(AuditEntry(at=float(i), who="ada" if i % 2 else "bob", action=f"POST /{i}", status=200))
            for i in range(5)
        ]
        assert [entry.seq for entry in written] == [1, 2, 3, 4, 5]
        assert audit.entries() == tuple(reversed(written))
        assert [entry.seq for entry in audit.entries(limit=2)] == [5, 4]
        assert [entry.seq for entry in audit.entries(before=4, limit=2)] == [3, 2]
        assert [entry.seq for entry in audit.entries(who="ada")] == [4, 2]

    def test_entries_are_found_by_what_was_done_and_what_came_of_it(self, audit: AuditLog) -> None:
        for action, target, status in (
            ("POST /v1/jobs", "", 201),
            ("log on", "Ada_x", 401),
            ("PUT /v1/jobs/a%x", "", 500),
            ("log on", "bob", 200),
        ):
            audit.append(AuditEntry(at=1.0, who="ada", action=action, target=target, status=status))

        assert [entry.seq for entry in audit.entries(text="/JOBS")] == [3, 1]
        assert [entry.seq for entry in audit.entries(text="ada_")] == [2]
        assert [entry.seq for entry in audit.entries(text="a%")] == [3]
        assert [entry.seq for entry in audit.entries(outcome="done")] == [4, 1]
        assert [entry.seq for entry in audit.entries(outcome="refused")] == [2]
        assert [entry.seq for entry in audit.entries(outcome="failed", text="jobs")] == [3]

    def test_old_entries_go_in_exchange_for_one_that_tells_so(self, audit: AuditLog, records: Records) -> None:
        for i in range(4):
            audit.append(AuditEntry(at=float(i), who="ada", action=f"POST /{i}", status=200))
        entry = AuditEntry(at=9.0, who="", action="clean up", status=200)

        assert [records.num_entries(before=at) for at in (0.0, 0.5, 2.0, 9.0)] == [0, 1, 2, 4]
        records.forget_entries(before=2.0, entry=entry)

        assert [entry.seq for entry in audit.entries()] == [5, 4, 3]
        assert audit.entries(limit=1) == (replace(entry, seq=5),)
        assert records.num_entries(before=9.0) == 2

    def test_old_refusals_without_a_name_are_forgotten_and_nothing_else(self, audit: AuditLog) -> None:
        for at, who, status in ((1.0, "", 401), (1.0, "", 200), (1.0, "ada", 403), (5.0, "", 404)):
            audit.append(AuditEntry(at=at, who=who, action="POST /x", status=status))
        audit.forget_refusals(before=5.0)
        assert [(entry.at, entry.who, entry.status) for entry in audit.entries()] == [
            (5.0, "", 404),
            (1.0, "ada", 403),
            (1.0, "", 200),
        ]
