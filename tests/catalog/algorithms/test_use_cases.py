"""Algorithms are checked before they are kept, are their owner's, and are not taken away from searches."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.catalog.algorithms.world import ADMIN, ANNA, BEN, OPTIMIZER, Algorithms

from pliant.core.algorithm import Algorithm, AlgorithmCode, AlgorithmSettings
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from pliant.core.job import JobSpec
from pliant.core.registry import Kept
from pliant.core.search import Objective, Sampler, Search, SearchSettings
from pliant.core.space import SearchParameter


@pytest.fixture
def world(tmp_path: Path) -> Algorithms:
    return Algorithms(tmp_path)


def search_by(kept: Kept[Algorithm], name: str = "digits") -> Search:
    return Search(
        name=name,
        owner="ben",
        settings=SearchSettings(
            parameters={"lr": SearchParameter(kind="float", low=0.0, high=1.0)},
            objectives=(Objective(metric="loss", direction="minimize"),),
            sampler=Sampler(name=kept.noun.name),
        ),
        job=JobSpec(name=name, script="train.py", virtual_workers=8),
        checksum="0" * 64,
        algorithm=kept.noun.code,
        created_at=0.0,
    )


def test_what_is_installed_is_kept_with_what_was_found_in_it(world: Algorithms) -> None:
    kept = world.install(description="Mine.", shared_with=("ben", "ben"))

    noun = kept.noun
    assert (noun.owner, noun.kind, noun.class_name, noun.has_state) == ("anna", "ibm", "PluginOptimizer", True)
    assert noun.shared_with == ("ben",)
    assert world.requests.get(BEN, "mine") == kept
    assert world.requests.page(BEN, "", 10) == ((kept,), None)
    assert world.archives() == [noun.checksum]
    assert (world.folders.unpacked(noun.checksum) / "optimizer.py").read_text() == OPTIMIZER
    assert world.requests.find("mine", "ben") == noun
    assert noun.code == AlgorithmCode(owner="anna", kind="ibm", checksum=noun.checksum)


def test_what_is_not_shared_is_not_there_for_others(world: Algorithms) -> None:
    world.install()

    assert world.requests.find("mine", "ben") is None
    assert (world.requests.names("anna"), world.requests.names("ben")) == (["mine"], [])
    with pytest.raises(NotFound):
        world.requests.get(BEN, "mine")
    world.requests.share(ANNA, "mine", ("*",))
    assert world.requests.find("mine", "ben") is not None
    with pytest.raises(Forbidden):
        world.requests.share(BEN, "mine", ())
    with pytest.raises(Forbidden):
        world.requests.remove(BEN, "mine")


@pytest.mark.parametrize("name", ["tpe", "TPE", "Random", "Bayesian", "hyperband"])
def test_names_of_samplers_that_are_built_in_cannot_be_taken(name: str, world: Algorithms) -> None:
    with pytest.raises(InvalidInput, match=f"{name!r} is the name of a sampler"):
        world.install(name=name)
    assert world.archives() == []


def test_a_name_is_taken_once_whatever_its_capitals(world: Algorithms) -> None:
    first = world.install()
    for name in ("mine", "Mine"):
        with pytest.raises(Conflict):
            world.install("other = 1\n", name=name)
    assert world.archives() == [first.noun.checksum]


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_run(world: Algorithms) -> None:
    archive = world.pack("raise SystemExit('it was run')\n", **{"sampler.py": ""})

    with pytest.raises(InvalidInput) as caught:
        world.requests.install(ANNA, "tpe", AlgorithmSettings(shared_with=("nobody",)), archive)
    assert [problem.field for problem in caught.value.problems] == ["shared_with.0", "name", "code"]
    assert "it was run" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('here'); raise ValueError('no data')", "exit code 1 before it was loaded(.|\n)*ValueError: no data"),
        ("import sys; print('\\x1b[2Jred', file=sys.stderr); sys.exit(7)", "exit code 7 .*\n.*\n\ufffd\\[2Jred"),
        ('print(\'{"problem": "it has no search", "class": "", "has_state": false}\'); exit()', "it has no search"),
        ("print('[' * 100_000); exit()", "ended with exit code 0 before"),
        ("print('x' * 10_000_000); import os; os.abort()", "ended with exit code -6"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_it_printed(code: str, said: str, world: Algorithms) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        world.install(code + "\n")
    assert len(str(caught.value)) < 20_000
    assert world.archives() == []
    assert list((world.folder / "algorithm-runs" / "code").iterdir()) == []


def test_it_is_known_what_an_environment_is_for(world: Algorithms) -> None:
    before = world.install(environment="nlp")
    world.searches.append(search_by(before))
    world.install(environment=None, replace_it=True)
    world.install(name="other", environment="nlp")

    assert world.requests.algorithms_in("nlp") == ["other"]
    assert world.requests.searches_in("nlp") == ["digits"], "it keeps to the version that it began with"
    assert world.requests.searches_in("vision") == []


def test_what_never_ends_is_ended(tmp_path: Path) -> None:
    world = Algorithms(tmp_path, limit_s=1.0)

    with pytest.raises(InvalidInput, match="it was not loaded after 1 s"):
        world.install("import time; time.sleep(600)\n")


def test_an_environment_has_to_be_there(world: Algorithms) -> None:
    with pytest.raises(InvalidInput, match="there is no environment 'npl'"):
        world.install(environment="npl")
    assert world.install(environment="nlp").noun.code.environment == "nlp"
    with pytest.raises(InvalidInput, match="install it again with another"):
        world.requests.change(ANNA, "mine", {"environment": None})


def test_nobody_but_the_owner_gives_it_other_code_since_it_runs_as_them(world: Algorithms) -> None:
    world.install(shared_with=("ben",))

    for stranger in (BEN, ADMIN):
        with pytest.raises(Forbidden, match="belongs to 'anna', and runs as them"):
            world.install("other = 1\n", caller=stranger, replace_it=True)
    with pytest.raises(NotFound):
        world.install(name="another", replace_it=True)
    world.requests.change(ADMIN, "mine", {"description": "Whose?"})
    world.requests.remove(ADMIN, "mine")


def test_a_new_version_is_for_new_searches_and_the_old_stays_as_long_as_one_needs_it(world: Algorithms) -> None:
    old = world.install()
    world.searches = [search_by(old)]
    new = world.install("other = 1\n", replace_it=True)

    assert (new.revision, new.noun.code) != (old.revision, old.noun.code)
    assert world.archives() == sorted([old.noun.checksum, new.noun.checksum])
    assert (world.folders.unpacked(old.noun.checksum) / "optimizer.py").read_text() == OPTIMIZER
    world.requests.sweep()
    assert world.archives() == sorted([old.noun.checksum, new.noun.checksum])

    world.searches = []
    world.requests.sweep()
    assert world.archives() == [new.noun.checksum]
    world.install("third = 1\n", replace_it=True)
    assert new.noun.checksum not in world.archives()


def test_it_is_not_removed_while_a_search_uses_it(world: Algorithms) -> None:
    kept = world.install()
    world.install(name="twin")  # of the same code
    world.searches = [search_by(kept, "digits"), search_by(kept, "letters")]

    with pytest.raises(Conflict, match="'mine' chooses for digits, letters; wait for their end, or remove them"):
        world.requests.remove(ANNA, "mine")
    world.requests.remove(ANNA, "twin")
    world.searches = []
    world.requests.remove(ANNA, "mine")
    assert world.archives() == []


def test_changes_are_of_a_revision(world: Algorithms) -> None:
    kept = world.install()
    changed = world.requests.change(ANNA, "mine", {"deadline_s": 5.0}, kept.revision)
    assert (changed.noun.deadline_s, changed.noun.checksum) == (5.0, kept.noun.checksum)

    stale: list[Callable[[], object]] = [
        lambda: world.requests.change(ANNA, "mine", {"deadline_s": 6.0}, kept.revision),
        lambda: world.requests.remove(ANNA, "mine", kept.revision),
        lambda: world.requests.install(
            ANNA, "mine", AlgorithmSettings(), world.pack(), replace_it=True, revision=kept.revision
        ),
    ]
    for attempt in stale:
        with pytest.raises(Stale):
            attempt()
