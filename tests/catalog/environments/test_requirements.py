"""Requirements files: one normal form and one key for what means the same; refused what is unsafe, all at once."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.environments.wheels import tiny_wheel

from pliant.catalog.environments.requirements import parse_requirements, read_requirements
from pliant.core.errors import InvalidInput

TEXT = """\
# what we need
--only-binary :all:
Torch_Vision   >=0.20 ; python_version > "3"   # for images
numpy==2.1 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
--pre

scikit.learn[extra]~=1.5
"""


def messages(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        parse_requirements(text)
    return [problem.message for problem in error.value.problems]


def test_the_normal_form() -> None:
    assert parse_requirements(TEXT).lines == (
        "--pre",
        "numpy==2.1 --hash=sha256:aaaa --hash=sha256:bbbb",
        "scikit-learn[extra]~=1.5",
        'torch-vision>=0.20 ; python_version > "3"',
    )


@given(st.permutations(["a==1", "b>2", "c[x]", "--pre", "d ; python_version > '3'"]))
def test_order_and_space_and_comments_do_not_change_the_key(lines: list[str]) -> None:
    spaced = "\n\n".join(f"  {line}   # {line}" for line in lines).replace("==", " == ").replace("[", " [ ")
    assert parse_requirements(spaced).key("v") == parse_requirements(
        "a==1\nb>2\nc[x]\n--pre\nd ; python_version > '3'"
    ).key("v")


def test_what_else_decides_changes_the_key() -> None:
    one = parse_requirements("a==1")
    keys = {one.key("python 3.11"), one.key("python 3.12"), parse_requirements("a==2").key("python 3.11"), one.key()}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("line", "because"),
    [
        ("-e .", "nothing is built"),
        ("--editable=./x", "nothing is built"),
        ("--index-url https://evil.example/simple", "administrator decides"),
        ("-i https://evil.example/simple", "administrator decides"),
        ("--extra-index-url=https://evil.example", "administrator decides"),
        ("--find-links /etc", "administrator decides"),
        ("-f /etc", "administrator decides"),
        ("--trusted-host evil.example", "administrator decides"),
        ("--no-binary :all:", "nothing is compiled"),
        ("--config-settings x", "is not known"),
        ("a;#", "is no requirement"),
        ("a ; --only-binary :all:", "is no requirement"),
        ("git+https://example.org/x.git", "server's index only"),
        ("x @ https://example.org/x-1-py3-none-any.whl", "server's index only"),
        ("x@file:///etc/passwd", "server's index only"),
        ("x @ /etc/x-1-py3-none-any.whl", "server's index only"),
        ("x==${SECRET}", "variables are not filled in"),
        ("/etc/passwd", "is a file"),
        ("./x-1-py3-none-any.whl", "is a file"),
        ("-r other.txt", "cannot be included"),
        ("=== nonsense", "is no requirement"),
        ("x y", "is no requirement"),
    ],
)
def test_unsafe_and_unclear_lines_are_refused(line: str, because: str) -> None:
    (message,) = messages(f"numpy\n{line}\n")
    assert because in message
    assert message.startswith("requirements, line 2: ")


def test_everything_wrong_is_told_at_once() -> None:
    assert len(messages("-e .\nx==1\ny @ https://example.org\n--index-url z\n")) == 3


def test_files_include_files_of_the_code_folder(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "requirements.txt").write_text("a==1\n-r more/base.txt\n-c more/limits.txt\n")
    (tmp_path / "more" / "base.txt").write_text("b==1\n-r ../requirements.txt\n--requirement=nested.txt\n")
    (tmp_path / "more" / "nested.txt").write_text("c\n")
    (tmp_path / "more" / "limits.txt").write_text("d<3\n")
    found = read_requirements(tmp_path, "requirements.txt")
    assert found.lines == ("a==1", "b==1", "c")
    assert found.constraints == ("d<3",)
    assert found.source == "a==1\nb==1\nc\n-c d<3\n"


def test_nothing_outside_the_code_folder_is_read(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (tmp_path / "secret.txt").write_text("password==1\n")
    (code / "link.txt").symlink_to(tmp_path / "secret.txt")
    (code / "requirements.txt").write_text("-r ../secret.txt\n-r link.txt\n-r missing.txt\n../x-1-py3-none-any.whl\n")
    with pytest.raises(InvalidInput) as error:
        read_requirements(code, "requirements.txt")
    told = [problem.message for problem in error.value.problems]
    assert [("outside" in message, "no such file" in message) for message in told] == [
        (True, False),
        (False, False),
        (False, False),
        (True, False),
    ]
    assert told[1].removeprefix("link.txt") == told[2].removeprefix("missing.txt")
    assert "password" not in str(error.value)
    for name in ("../secret.txt", "/etc/passwd", "missing.txt", "."):
        with pytest.raises(InvalidInput):
            read_requirements(code, name)


def test_a_wheel_of_the_code_counts_with_what_it_holds(tmp_path: Path) -> None:
    wheel = tiny_wheel(tmp_path / "wheels")
    (tmp_path / "requirements.txt").write_text(f"./wheels/{wheel.name}\n")
    before = read_requirements(tmp_path, "requirements.txt")
    assert before.lines == (f"./wheels/{wheel.name}",)
    assert [str(found.path) for found in before.wheels] == [f"wheels/{wheel.name}"]
    with wheel.open("ab") as file:
        file.write(b"changed")
    assert read_requirements(tmp_path, "requirements.txt").key() != before.key()


def test_a_wheel_that_is_changed_after_it_was_read_is_not_taken(tmp_path: Path) -> None:
    wheel = tiny_wheel(tmp_path)
    (tmp_path / "requirements.txt").write_text(f"./{wheel.name}\n")
    (found,) = read_requirements(tmp_path, "requirements.txt").wheels
    found.copy(tmp_path / "first")
    assert (tmp_path / "first").read_bytes() == wheel.read_bytes()
    wheel.write_bytes(b"another")
    with pytest.raises(InvalidInput, match="was changed while it was read"):
        found.copy(tmp_path / "second")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def a_huge_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "hard link", "loop", "pipe", "socket", "folder", "huge", "behind a link"])
@pytest.mark.parametrize("name", ["requirements.txt", "own-1.0-py3-none-any.whl"])
def test_what_a_task_put_in_the_place_of_a_file_is_neither_read_nor_waited_for(
    tmp_path: Path, name: str, kind: str
) -> None:
    code, token = tmp_path / "code", tmp_path / "token"
    code.mkdir()
    token.write_text("the-token\n")
    asked = name if name == "requirements.txt" else "asked.txt"
    (code / "asked.txt").write_text(f"./{name}\n")
    plant: dict[str, Callable[[Path], None]] = {
        "link": lambda path: path.symlink_to(token),
        "hard link": lambda path: path.hardlink_to(token),
        "loop": lambda path: path.symlink_to(path),
        "pipe": a_pipe,
        "socket": a_socket,
        "folder": lambda path: path.mkdir(),
        "huge": a_huge_file,
        "behind a link": lambda path: path.symlink_to("/proc/self/environ"),
    }
    plant[kind](code / name)
    with pytest.raises(InvalidInput) as error:
        read_requirements(code, asked)
    assert "the-token" not in str(error.value)
    assert ("longer than" if kind == "huge" else "no such plain file") in str(error.value)


def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "names.txt").write_text("secret==1\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "more").symlink_to(tmp_path / "secrets")
    with pytest.raises(InvalidInput, match="no such plain file"):
        read_requirements(tmp_path / "code", "more/names.txt")


@pytest.mark.parametrize(
    ("content", "because"), [(b"a\xff\n", "not UTF-8"), (b"a\n" * 200_000, "longer than"), (b"x\n" * 3, "")]
)
def test_what_is_no_requirements_file_is_refused(tmp_path: Path, content: bytes, because: str) -> None:
    (tmp_path / "requirements.txt").write_bytes(content)
    if not because:
        assert read_requirements(tmp_path, "requirements.txt").lines == ("x",)
        return
    with pytest.raises(InvalidInput, match=because):
        read_requirements(tmp_path, "requirements.txt")


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(InvalidInput):
        found = parse_requirements(text)
        assert parse_requirements(found.text) == found
