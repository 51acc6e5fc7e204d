"""Folders' locks, and what one server leaves for the next."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from tests.hostile import deep_tree

from pliant.core.errors import Conflict, Unavailable
from pliant.core.plan import Policy
from pliant.entry.server.home import SERVER_FILE, FolderLock, open_home, read_url
from pliant.entry.server.lead import FolderLead, Keeper, lead_of, refusal
from pliant.entry.server.settings import ServerSettings


def settings(home: Path, *, database: str = "", standby: bool = False) -> ServerSettings:
    return ServerSettings(
        home=home, database=database or f"sqlite:///{home}/pliant.db", standby=standby, policy=Policy()
    )


def test_whatever_a_killed_server_left_of_uploads_is_removed(tmp_path: Path) -> None:
    (tmp_path / "uploads" / "draft" / "code").mkdir(parents=True)
    (tmp_path / "uploads" / "draft" / "code" / "train.py").write_text("")
    (tmp_path / "uploads" / "half").write_text("")
    deep_tree(tmp_path / "uploads" / "deep")

    assert list(open_home(tmp_path).uploads.iterdir()) == []


def test_a_folder_is_one_servers_or_that_of_several_which_share_a_database(tmp_path: Path) -> None:
    with closing(FolderLock(tmp_path)) as one, closing(FolderLock(tmp_path)) as other:
        assert one.take()
        assert not other.take()
        assert not other.take(shared=True)
        assert f"another Pliant server (pid {os.getpid()}) uses this state folder" in str(other.refusal())
    with closing(FolderLock(tmp_path)) as one, closing(FolderLock(tmp_path)) as other:
        assert one.take(shared=True)
        assert other.take(shared=True)
    assert FolderLock(tmp_path).take()


def test_a_second_server_of_a_file_waits_only_if_it_was_asked_to(tmp_path: Path) -> None:
    with closing(FolderLock(tmp_path)) as lock:
        assert isinstance(lead_of(settings(tmp_path), lock), FolderLead)
        assert isinstance(refusal(settings(tmp_path), lock), Conflict)
        assert refusal(settings(tmp_path, standby=True), lock) is None
        assert refusal(settings(tmp_path, database="postgresql://h/x"), lock) is None


def test_a_server_of_a_database_does_not_enter_the_folder_of_one_with_a_file(tmp_path: Path) -> None:
    with closing(FolderLock(tmp_path)) as first, closing(FolderLock(tmp_path)) as second:
        assert first.take()
        with pytest.raises(Conflict, match="uses this state folder"):
            lead_of(settings(tmp_path, database="postgresql://h/x"), second)


def test_a_keeper_keeps_the_lead_until_it_is_closed(tmp_path: Path) -> None:
    with closing(FolderLock(tmp_path)) as lock:
        keeper = Keeper(FolderLead(lock), "sqlite:///x")
        assert keeper.take()
        assert keeper.term is None
        keeper.close()


def test_the_file_of_another_server_is_left_alone(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    home.announce("http://127.0.0.1:1", 2.0)
    assert read_url(tmp_path / SERVER_FILE) == "http://127.0.0.1:1"
    (tmp_path / SERVER_FILE).write_text(json.dumps({"url": "http://127.0.0.1:2", "pid": os.getpid() + 1}))
    home.withdraw()
    assert read_url(tmp_path / SERVER_FILE) == "http://127.0.0.1:2"
    home.announce("http://127.0.0.1:1", 2.0)
    home.withdraw()
    assert read_url(tmp_path / SERVER_FILE) is None
    home.withdraw()


def test_clients_of_another_folder_find_the_server_too(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    home = open_home(tmp_path / "own", also=tmp_path / "other")
    home.announce("http://127.0.0.1:1", 2.0)
    assert read_url(tmp_path / "other" / SERVER_FILE) == "http://127.0.0.1:1"
    assert (tmp_path / "other" / "token").read_text() == home.token
    assert (tmp_path / "other" / "token").stat().st_mode & 0o777 == 0o600


def test_a_secret_that_is_empty_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    with pytest.raises(Unavailable, match="token is empty; remove it"):
        open_home(tmp_path)
