"""Until when tasks may go on without a server, as two processes read it."""

from pathlib import Path

import pytest

from pliant.cluster.zygote import deadline
from pliant.cluster.zygote.deadline import FILE, OrphanDeadline, boot_time, read


def test_a_machine_without_the_file_lets_its_tasks_go_on(tmp_path: Path) -> None:
    assert read(tmp_path / FILE) is None


def test_it_begins_with_the_longest_time_and_can_only_be_put_off(tmp_path: Path) -> None:
    before = boot_time()
    one = OrphanDeadline(tmp_path, 60.0)
    assert before + 60.0 <= one.at <= boot_time() + 60.0
    assert read(tmp_path / FILE) == one.at

    later = one.at + 5.0
    one.put_off(later)
    one.put_off(later - 1.0)
    assert one.at == read(tmp_path / FILE) == later
    assert not one.is_over()


def test_the_next_agent_keeps_to_what_the_one_before_was_granted(tmp_path: Path) -> None:
    first = OrphanDeadline(tmp_path, 2.0)

    assert OrphanDeadline(tmp_path, 60.0).at == first.at


def test_an_instant_of_another_boot_does_not_count(tmp_path: Path) -> None:
    OrphanDeadline(tmp_path, 1e9)

    assert OrphanDeadline(tmp_path, 60.0).at <= boot_time() + 60.0


def test_ended_is_over_for_every_process_until_it_is_put_off(tmp_path: Path) -> None:
    one = OrphanDeadline(tmp_path, 60.0)
    one.end()

    assert one.is_over()
    assert read(tmp_path / FILE) == 0.0


@pytest.mark.parametrize("content", [b"", b"1234567", b"123456789"])
def test_a_damaged_file_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    found = read(tmp_path / FILE)

    assert found is None or len(content) > 8
    assert OrphanDeadline(tmp_path, 60.0).at <= boot_time() + 60.0


def test_a_zygote_waits_longer_than_the_agent() -> None:
    assert deadline.ZYGOTE_GRACE_S > 0
