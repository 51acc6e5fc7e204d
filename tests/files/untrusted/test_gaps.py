"""Logs whose middle is given back to the disk, and how they are read then."""

import os
from pathlib import Path

import pytest

from pliant.files.untrusted.gaps import WithoutGaps, cut_middle, read_piece
from pliant.files.untrusted.opening import open_file
from pliant.files.untrusted.path import UntrustedPath

KEPT = 1 << 20
LINE = b"%08d a line of a log that says little\n"


def held(path: Path) -> int:
    return path.stat().st_blocks * 512


def write_lines(path: Path, first: int, last: int) -> None:
    with path.open("ab") as log:
        log.write(b"".join(LINE % number for number in range(first, last)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "stdout"
    write_lines(path, 0, 100_000)
    return path


@pytest.fixture
def where(log: Path) -> UntrustedPath:
    return UntrustedPath(log.parent, log.name)


def text_of(where: UntrustedPath, start: int = 0) -> bytes:
    with open_file(where) as file:
        found, offset = b"", start
        while (read := read_piece(file, offset, 50_000)).text:
            found, offset = found + read.text, read.next
        assert offset == file.num_bytes
        return found


def test_what_is_short_enough_stays_whole(log: Path, where: UntrustedPath) -> None:
    before = log.read_bytes()
    assert cut_middle(where, 100 << 20) == 0
    assert log.read_bytes() == before == text_of(where)


def test_beginning_and_end_stay_and_the_disk_gets_the_rest(log: Path, where: UntrustedPath) -> None:
    whole = log.read_bytes()
    before = held(log)
    num_bytes = cut_middle(where, KEPT)
    assert log.stat().st_size == len(whole)
    assert held(log) == before - num_bytes
    assert KEPT // 2 < held(log) <= KEPT
    text = text_of(where)
    head, gap, tail = text.partition(b"\n[pliant: ")
    assert whole.startswith(head)
    assert len(head) >= KEPT // 4
    line, _, tail = tail.partition(b"\n")
    assert b"are left out here: the log is too long]" in line
    assert whole.endswith(tail)
    assert len(tail) >= KEPT // 2
    assert gap


def test_who_writes_goes_on_and_it_is_cut_again(log: Path, where: UntrustedPath) -> None:
    with log.open("ab", buffering=0) as writer:
        cut_middle(where, KEPT)
        for number in range(100_000, 140_000):
            writer.write(LINE % number)
        assert cut_middle(where, KEPT) > 0
        writer.write(b"the last line\n")
    assert held(log) <= KEPT + (1 << 16)
    text = text_of(where)
    assert text.count(b"[pliant: ") == 1
    assert text.endswith(LINE % 139_999 + b"the last line\n")


def test_it_has_a_length_as_people_read_it(log: Path, where: UntrustedPath) -> None:
    cut_middle(where, KEPT)
    text = text_of(where)
    with open_file(where) as file:
        read = WithoutGaps(file)
        assert read.has_gaps
        assert read.num_bytes == read.facts.st_size == len(text)
        parts, offset = [], 0
        while part := read.read_at(offset, 10_007):
            parts.append(part)
            offset += len(part)
        assert b"".join(parts) == text
        assert read.read_at(7, 2 * len(text)) == text[7:], "as a packer reads it: over the gap"
        assert (read.facts.st_mode, read.facts.st_mtime) == (file.facts.st_mode, file.facts.st_mtime)


def test_a_middle_that_goes_while_it_is_read_is_no_text_of_zeros(log: Path, where: UntrustedPath) -> None:
    with open_file(where) as file:
        cut_middle(where, KEPT)
        found, offset = [], KEPT // 4 - 50_000
        while offset < file.num_bytes - KEPT // 4:
            read = read_piece(file, offset, 100_000)
            found.append(read.text)
            offset = read.next
    assert b"\0" not in b"".join(found)
    assert [b"are left out here" in text for text in found[:3]] == [False, True, False]


def test_reading_may_begin_within_the_gap(log: Path, where: UntrustedPath) -> None:
    cut_middle(where, KEPT)
    middle = log.stat().st_size // 2
    text = text_of(where, middle)
    assert text.startswith(b"\n[pliant: ")
    assert text.endswith(LINE % 99_999)


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder", "nothing"])
def test_nothing_else_is_touched(tmp_path: Path, kind: str) -> None:
    victim, place = tmp_path / "victim", tmp_path / "task" / "stdout"
    place.parent.mkdir()
    victim.write_bytes(b"x" * (4 << 20))
    if kind == "link":
        place.symlink_to(victim)
    elif kind == "second name":
        os.link(victim, place)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    with pytest.raises(OSError, match=r"plain file|second name|No such|symbolic links|cross"):
        cut_middle(UntrustedPath(tmp_path, "task/stdout"), KEPT)
    assert victim.read_bytes() == b"x" * (4 << 20)


def test_holes_of_the_program_s_own_are_no_end(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    with path.open("wb") as file:
        for number in range(3000):
            file.seek(number * 131_072)
            file.write(b"x")
    where = UntrustedPath(tmp_path, "stdout")
    cut_middle(where, 1 << 20)
    with open_file(where) as opened:
        read = WithoutGaps(opened)
        assert read.num_bytes <= opened.num_bytes
        assert read.read_at(read.num_bytes - 1, 10) == b"x"
