"""Of what algorithms print the newest is kept, however much there is and whatever it is."""

import os
from pathlib import Path

from pliant.catalog.algorithms.logs import AlgorithmLogs


def test_the_newest_is_kept_and_the_disk_holds_twice_as_much_at_most(tmp_path: Path) -> None:
    logs = AlgorithmLogs(tmp_path / "logs", max_bytes=100)
    for number in range(1000):
        logs.append("digits", f"line {number}\n".encode())

    text = logs.read("digits")
    assert text.endswith("line 998\nline 999\n")
    assert 80 <= len(text) <= 100
    assert sum(path.stat().st_size for path in (tmp_path / "logs").iterdir()) <= 200

    logs.append("digits", b"x" * 1000)
    assert logs.read("digits") == "x" * 100


def test_each_search_has_its_own_and_any_bytes_can_be_read(tmp_path: Path) -> None:
    logs = AlgorithmLogs(tmp_path / "logs")
    assert logs.read("digits") == ""
    logs.append("digits", b"\xff\x00 ok\n")
    logs.append("digits.log", b"other\n")

    assert (logs.read("digits"), logs.read("digits.log")) == ("\ufffd\x00 ok\n", "other\n")
    logs.remove("digits.log")
    logs.append("gone", b"x")
    logs.sweep(["digits"])
    assert os.listdir(tmp_path / "logs") == ["digits.log"]
    assert logs.read("gone") == ""
