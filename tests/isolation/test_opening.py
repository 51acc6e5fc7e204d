"""A path is opened if no link is on the way, by one system call or name by name."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pliant.isolation import opening
from pliant.isolation.opening import open_plain


@pytest.fixture(params=["by one call", "by names"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    if request.param == "by names":

        def missing(*_: object) -> int:
            raise OSError(errno.ENOSYS, "no such call")

        monkeypatch.setattr(opening, "system_call", missing)

    def open_and_say(path: Path) -> str:
        place = open_plain(str(path))
        try:
            assert not os.get_inheritable(place)
            return os.readlink(f"/proc/self/fd/{place}")
        finally:
            os.close(place)

    return open_and_say


def test_folders_and_files_are_opened(opened: Callable[[Path], str], tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "c").write_text("x")

    assert opened(tmp_path / "a" / "b") == str(tmp_path / "a" / "b")
    assert opened(tmp_path / "a" / "c") == str(tmp_path / "a" / "c")
    assert opened(Path("/")) == "/"


def test_a_link_is_refused_on_the_way_and_at_the_end(opened: Callable[[Path], str], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    (tmp_path / "link").symlink_to("a")

    for path in (tmp_path / "link", tmp_path / "link" / "b"):
        with pytest.raises(OSError, match="link") as refused:
            opened(path)
        assert refused.value.errno == errno.ELOOP


def test_what_is_not_there_is_said(opened: Callable[[Path], str], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "none" / "b")
