"""Which database a server uses; and no password is on a command line, in a message or in a file that others read."""

from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput
from pliant.entry.server.database import database_url, display_url, is_server, refuse_secret

URL = "postgresql://ann@db.example.org:5432/pliant"
SECRET_URL = "postgresql://ann:sesame@db.example.org/pliant"


def test_a_home_has_a_database_of_its_own_until_another_is_named(tmp_path: Path) -> None:
    assert database_url(tmp_path, None, {}) == f"sqlite:///{tmp_path}/pliant.db"
    file = tmp_path / "database"
    file.write_text(f"{SECRET_URL}\n")
    file.chmod(0o600)
    assert database_url(tmp_path, None, {}) == SECRET_URL
    assert database_url(tmp_path, None, {"PLIANT_DATABASE": URL}) == URL
    assert database_url(tmp_path, "postgres://bob@h/x", {"PLIANT_DATABASE": URL}) == "postgres://bob@h/x"


@pytest.mark.parametrize(
    "url",
    [
        SECRET_URL,
        "postgresql://:sesame@h/x",
        "postgresql://ann@h/x?password=sesame",
        "postgresql://ann@h/x?sslmode=require&PassWord=sesame",
        "postgresql://ann@h/x?p%61ssword=sesame",
        "postgresql://ann@h/x?sslpassword=sesame",
        "postgresql://[sesame/x",
        "host=h password=sesame",
    ],
)
def test_a_password_on_the_command_line_is_refused_with_the_reason_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"seen by everybody who lists processes.*PLIANT_DATABASE.*mode 600") as told:
        database_url(tmp_path, url, {})
    assert "sesame" not in str(told.value)


def test_a_url_without_a_password_may_be_on_the_command_line() -> None:
    refuse_secret(URL)
    refuse_secret("postgresql://ann@h:5432/x?sslmode=verify-full&connect_timeout=3")


@pytest.mark.parametrize("bad", ["mysql://ann:sesame@h/x", "sesame", "postgresql:sesame", f"{URL}\n{URL}", "h:5432"])
def test_what_is_no_database_is_refused_without_repeating_it(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InvalidInput, match="PLIANT_DATABASE: this is no database URL") as told:
        database_url(tmp_path, None, {"PLIANT_DATABASE": bad})
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "database"
    file.write_text(SECRET_URL)
    file.chmod(mode)
    with pytest.raises(InvalidInput, match=rf"others can read it \(mode {mode:o}\); run: chmod 600") as told:
        database_url(tmp_path, None, {})
    assert "sesame" not in str(told.value)


def test_a_file_that_holds_no_url_is_refused_without_repeating_it(tmp_path: Path) -> None:
    file = tmp_path / "database"
    for content in (b"", b"sesame\nsesame", b"\xff\xfe"):
        file.write_bytes(content)
        file.chmod(0o600)
        with pytest.raises(InvalidInput) as told:
            database_url(tmp_path, None, {})
        assert "sesame" not in str(told.value)


def test_what_is_shown_of_a_url_holds_no_secret() -> None:
    assert display_url("postgresql+psycopg://ann:ses%40me@h:1/x?password=sesame") == "postgresql://ann@h:1/x"
    assert display_url("postgresql://h/x") == "postgresql://h/x"
    assert display_url("sqlite:////home/pliant.db") == "sqlite in the home folder"
    assert is_server(URL)
    assert not is_server("sqlite:////home/pliant.db")
