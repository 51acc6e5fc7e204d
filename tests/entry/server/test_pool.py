"""Which folder belongs to which database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.databases import new_database

from pliant.core.errors import Conflict
from pliant.core.plan import Policy
from pliant.core.registry import Registry
from pliant.entry.server.pool import folder_of, id_of
from pliant.entry.server.settings import ServerSettings
from pliant.store.sql import SqlStore


@contextmanager
def opened(url: str) -> Iterator[Registry]:
    store = SqlStore(url)
    try:
        yield store.registry
    finally:
        store.close()


def settings(home: Path, url: str) -> ServerSettings:
    home.mkdir(exist_ok=True)
    return ServerSettings(home=home, database=url, policy=Policy())


@pytest.fixture(scope="module")
def urls() -> Iterator[list[str]]:
    with new_database() as one, new_database() as other:
        yield [one, other]


def test_a_pool_is_its_database_and_its_folder(tmp_path: Path, urls: list[str]) -> None:
    url, other_url = urls
    first, second, moved = tmp_path / "first", tmp_path / "second", tmp_path / "moved"
    with opened(url) as registry, opened(other_url) as other:
        assert folder_of(registry, settings(first, url), 1.0) == first
        assert folder_of(registry, settings(first, url), 2.0) == first
        assert folder_of(registry, settings(second, url), 3.0) == first, "a server of another folder works in this one"
        with pytest.raises(Conflict, match=r"the jobs of .*first are in another database \(postgresql://\w+@"):
            folder_of(other, settings(first, other_url), 4.0)
        assert folder_of(other, settings(second, other_url), 5.0) == second
        with pytest.raises(Conflict, match=r"the jobs of .*second are in another database"):
            folder_of(registry, settings(second, url), 6.0)
        first.rename(moved)
        with pytest.raises(Conflict, match=r"are in .*first, which is not here; give --home with that folder"):
            folder_of(registry, settings(tmp_path / "third", url), 7.0)
        assert folder_of(registry, settings(moved, url), 8.0) == moved
        assert folder_of(registry, settings(tmp_path / "third", url), 9.0) == moved


def test_a_database_in_its_folder_goes_wherever_that_is_moved_or_copied(tmp_path: Path) -> None:
    home = tmp_path / "home"
    mine = settings(home, f"sqlite:///{home}/pliant.db")
    with opened(mine.database) as registry:
        assert folder_of(registry, mine, 1.0) == home
    (home / "pool.json").unlink()  # as in a folder of before
    home.rename(tmp_path / "copy")
    copy = settings(tmp_path / "copy", f"sqlite:///{tmp_path}/copy/pliant.db")
    with opened(copy.database) as registry:
        assert folder_of(registry, copy, 2.0) == copy.home
        assert folder_of(registry, copy, 3.0) == copy.home


def test_a_folder_whose_jobs_are_elsewhere_does_not_begin_anew(tmp_path: Path, urls: list[str]) -> None:
    home = tmp_path / "home"
    sqlite = settings(home, f"sqlite:///{home}/pliant.db")
    with opened(sqlite.database) as registry:
        folder_of(registry, sqlite, 1.0)
    (home / "pliant.db").unlink()
    with opened(sqlite.database) as registry, pytest.raises(Conflict, match=r"\(sqlite in the home folder\).*remove"):
        folder_of(registry, sqlite, 2.0)


def test_an_empty_folder_takes_the_place_of_a_lost_one_if_an_object_store_has_copies(tmp_path: Path) -> None:
    asked = []

    def has_copies(pool: str) -> bool:
        asked.append(pool)
        return len(asked) > 1

    with new_database() as url, opened(url) as registry:
        first, second = settings(tmp_path / "first", url), settings(tmp_path / "second", url)
        assert folder_of(registry, first, 1.0, has_copies) == first.home
        assert folder_of(registry, second, 2.0, has_copies) == first.home, "it is there"
        assert asked == []
        first.home.rename(tmp_path / "lost")
        with pytest.raises(Conflict, match="or --results-to where its results were copied to"):
            folder_of(registry, second, 3.0, has_copies)
        assert folder_of(registry, second, 4.0, has_copies) == second.home
        assert folder_of(registry, second, 5.0, has_copies) == second.home
        assert asked == [id_of(registry)] * 2
