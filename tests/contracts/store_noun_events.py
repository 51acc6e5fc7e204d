"""The contract of `Store` over events of nouns that belong to somebody: who reads which, and how many are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from tests.contracts.searches import a_search
from tests.contracts.store import a_job, an_event

from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, NotFound, Stale
from pliant.core.event import Event, EventKind
from pliant.core.job import DeletedJob, JobId
from pliant.core.ports import EventFilter, Store, Writes
from pliant.core.search import SearchWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A noun that can be shared."""

    KIND: ClassVar[str] = "dataset"

    name: str
    owner: str
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(Shown):
    """With whom a job is shared."""

    KIND: ClassVar[str] = "job share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Shown):
    """A noun that has parts."""

    KIND: ClassVar[str] = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Shown):
    """A noun that is seen by whoever sees its model."""

    KIND: ClassVar[str] = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet(Shown):
    """A noun of which nothing is said."""

    KIND: ClassVar[str] = "token"


def read_by(store: Store, user: str | None, **asked: Any) -> list[tuple[str, Any]]:
    """Return the kind and the name in every event that somebody reads; None sees all."""
    visible = None if user is None else VisibleJobs(owner=user)
    return [(event.kind.value, event.data.get("name")) for event in events(store, visible, **asked)]


def events(store: Store, visible: VisibleJobs | None, **asked: Any) -> Sequence[Event]:
    return store.events(EventFilter(visible=visible, **asked))


NAMED, UNNAMED = ("dataset.changed", "flowers"), ("dataset.changed", None)


class NounEventsContract:
    """What a caller may rely on."""

    def test_whoever_sees_a_noun_reads_of_its_change_and_nobody_else(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann", shared_with=("bob",)), at=3.0)
        assert [read_by(store, user) for user in ("ann", "bob", "cem", None)] == [[NAMED], [NAMED], [], [NAMED]]
        (event,) = events(store, None)
        assert (event.at, event.message, event.job_id) == (3.0, "the data set flowers was added", None)

    def test_what_is_shared_with_everybody_is_read_by_everybody(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann", shared_with=("*",)), at=3.0)
        assert read_by(store, "cem") == [NAMED]

    def test_who_is_given_a_share_reads_of_it(self, store: Store) -> None:
        shown = Shown(name="flowers", owner="ann")
        store.registry.add(shown, at=1.0)
        store.registry.replace(replace(shown, shared_with=("bob",)), at=2.0)
        assert read_by(store, "bob") == [NAMED]

    def test_who_lost_a_share_reads_that_something_is_gone_and_of_that_noun_nothing_more(self, store: Store) -> None:
        shown = Shown(name="flowers", owner="ann", shared_with=("bob", "*"))
        store.registry.add(shown, at=1.0)
        store.registry.replace(replace(shown, shared_with=("bob",)), at=2.0)
        assert [read_by(store, user) for user in ("bob", "cem", None)] == [[UNNAMED, NAMED], [UNNAMED], [NAMED]]
        store.registry.replace(replace(shown, shared_with=()), at=3.0)
        assert read_by(store, "bob") == [UNNAMED, UNNAMED]  # everybody's, and his own
        seen = store.last_seq()
        store.registry.replace(replace(shown, shared_with=()), at=4.0)
        assert (read_by(store, "bob", after=seen), read_by(store, "ann", after=seen)) == ([], [NAMED])
        for event in events(store, VisibleJobs(owner="bob")):
            assert (event.data, event.message) == ({}, "what you see of data sets has changed")

    def test_of_a_noun_that_is_removed_its_viewers_read_no_name(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann", shared_with=("bob",)), at=1.0)
        store.registry.remove(Shown, "flowers")
        assert [read_by(store, user) for user in ("ann", "bob", "cem", None)] == [[UNNAMED], [UNNAMED], [], [NAMED]]
        assert events(store, None)[0].message == "the data set flowers was removed"

    def test_a_new_noun_of_an_old_name_tells_its_owner_nothing_of_the_old_one(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann"), at=1.0)
        store.registry.remove(Shown, "flowers")
        store.registry.add(Shown(name="flowers", owner="bob"), at=3.0)
        assert [event.at for event in events(store, VisibleJobs(owner="bob"))] == [3.0]
        assert read_by(store, "ann") == [UNNAMED]

    def test_only_the_newest_event_of_a_noun_is_kept_and_it_comes_after_all_that_was_read(self, store: Store) -> None:
        shown = Shown(name="flowers", owner="ann", shared_with=("bob",))
        store.registry.add(shown, at=0.0)
        store.registry.add(replace(shown, name="birds"), at=0.0)
        for at in range(1, 50):
            seen = store.last_seq()
            store.registry.replace(shown, at=float(at))
            assert [event.seq for event in events(store, VisibleJobs(owner="bob"), after=seen)] == [seen + 1]
        assert read_by(store, None) == [("dataset.changed", "birds"), NAMED]

    def test_what_is_refused_writes_no_event(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann"), at=1.0)
        seen = store.last_seq()
        with pytest.raises(Conflict):
            store.registry.add(Shown(name="flowers", owner="bob"), at=2.0)
        with pytest.raises(Stale):
            store.registry.replace(Shown(name="flowers", owner="bob"), at=2.0, revision=7)
        with pytest.raises(NotFound):
            store.registry.remove(Shown, "birds")
        store.registry.announce(Shown, "birds", at=2.0)
        assert (store.last_seq(), read_by(store, "bob")) == (seen, [])

    def test_nothing_is_said_of_nouns_that_nobody_looks_at(self, store: Store) -> None:
        store.registry.add(Quiet(name="token-1", owner="ann"), at=1.0)
        store.registry.announce(Quiet, "token-1", at=1.0)
        store.registry.remove(Quiet, "token-1")
        assert store.last_seq() == 0

    def test_a_part_is_read_of_by_whoever_sees_the_whole(self, store: Store) -> None:
        store.registry.add(Whole(name="net", owner="ann", shared_with=("bob",)), at=1.0)
        store.registry.add(Part(name="net/run-1", owner="cem"), at=2.0)
        expected = [("model.changed", "net")]
        assert [read_by(store, user) for user in ("ann", "bob", "cem")] == [expected, expected, []]
        store.registry.remove(Part, "net/run-1")
        assert [event.message for event in events(store, None)] == ["the model net was changed"]

    def test_an_announcement_is_an_event_of_a_noun_that_stays_as_it_is(self, store: Store) -> None:
        kept = store.registry.add(Shown(name="flowers", owner="ann"), at=1.0)
        store.registry.announce(Shown, "flowers", at=2.0)
        assert [(event.at, event.message) for event in events(store, VisibleJobs(owner="ann"))] == [
            (2.0, "the data set flowers was changed")
        ]
        assert (store.registry.get(Shown, "flowers"), read_by(store, "bob")) == (kept, [])

    def test_an_event_for_one_user_is_read_by_nobody_else_and_one_of_a_kind_is_kept(self, store: Store) -> None:
        for at in (1.0, 2.0):
            store.registry.announce_to("ann", EventKind.UPLOAD_CHANGED, at=at)
        store.registry.announce_to("bob", EventKind.UPLOAD_CHANGED, at=3.0)
        assert [event.at for event in events(store, VisibleJobs(owner="ann"))] == [2.0]
        assert events(store, None) == ()

    def test_a_search_says_of_itself_what_other_nouns_do(self, store: Store) -> None:
        searches = store.searches  # type: ignore[attr-defined]
        search = replace(a_search("digits"), owner="ann")
        searches.add(search)
        for number in range(100):
            searches.write(SearchWrites(search=replace(search, revision=number + 2)))
        expected = [("search.changed", "digits")]
        assert [read_by(store, user) for user in ("ann", "bob", None)] == [expected, [], expected]
        searches.remove("digits")
        assert [read_by(store, user) for user in ("ann", None)] == [[("search.changed", None)], expected]

    def test_with_whom_a_job_is_shared_is_read_by_those_and_goes_with_the_job(self, store: Store) -> None:
        store.write(Writes(jobs=(replace(a_job("job-1"), owner="ann"),)))
        store.registry.add(Share(name="job-1", owner="ann", shared_with=("bob",)), at=1.0)
        (event,) = events(store, VisibleJobs(owner="bob"))
        assert (event.kind, event.job_id) == (EventKind.SHARE_CHANGED, "job-1")
        assert read_by(store, "cem") == []
        gone = DeletedJob(id=JobId("job-1"), owner="ann", deleted_at=5.0, deleted_by="ann", has_files=False)
        store.write(Writes(deleted=(gone,)))
        assert [(event.at, event.data) for event in events(store, VisibleJobs(owner="bob"))] == [(5.0, {})]
        assert events(store, None) == ()

    def test_kinds_are_left_out_that_are_hidden(self, store: Store) -> None:
        store.registry.add(Shown(name="flowers", owner="ann"), at=1.0)
        store.registry.add(Whole(name="net", owner="ann"), at=1.0)
        hidden = frozenset({EventKind.DATASET_CHANGED})
        for user in ("ann", None):
            assert read_by(store, user, hidden=hidden) == [("model.changed", "net")]

    def test_changes_of_slots_of_others_come_only_if_they_are_asked_for(self, store: Store) -> None:
        jobs = tuple(replace(a_job(f"job-{n}"), owner=owner) for n, owner in enumerate(("ann", "bob"), start=1))
        said = [replace(an_event("slots", job_id=job.id), kind=EventKind.SLOTS_CHANGED) for job in jobs]
        store.write(Writes(jobs=jobs, events=(*said, an_event("decision", job_id="job-2"))))
        ann = VisibleJobs(owner="ann")
        assert [event.job_id for event in events(store, ann)] == ["job-1"]
        assert [event.job_id for event in events(store, ann, other_slots=True)] == ["job-1", "job-2"]

    def test_listeners_are_called_after_events_were_stored(self, store: Store) -> None:
        seen: list[int] = []
        unsubscribe = store.registry.subscribe(lambda: seen.append(store.last_seq()))
        store.registry.add(Shown(name="flowers", owner="ann"), at=1.0)
        store.registry.add(Quiet(name="token-1", owner="ann"), at=1.0)
        store.registry.announce_to("ann", EventKind.UPLOAD_CHANGED, at=1.0)
        unsubscribe()
        store.registry.remove(Shown, "flowers")
        assert seen == [1, 2]
