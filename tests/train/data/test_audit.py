"""An audit on a disk that fills up: training goes on, and the holes are told once."""

import json
from pathlib import Path

from pliant.train.data.audit import SampleAudit


def test_what_was_written_can_be_read_line_by_line(tmp_path: Path) -> None:
    audit = SampleAudit(tmp_path / "audit" / "job-1.1.jsonl")
    audit.attempt(generation=1, step=0, epoch=0, samples=[3, 1])
    audit.commit(generation=1, step=0)
    audit.close()
    lines = (tmp_path / "audit" / "job-1.1.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"g": 1, "s": 0, "e": 0, "i": [3, 1]}, {"g": 1, "c": 0}]


def test_a_full_disk_is_told_once_and_raises_nothing() -> None:
    told: list[str] = []
    audit = SampleAudit(Path("/dev/full"), note=told.append)  # the kernel's own full disk
    for step in range(1000):
        audit.attempt(generation=1, step=step, epoch=0, samples=list(range(20)))
        audit.commit(generation=1, step=step)
    audit.close()
    assert told == ["the audit may have holes: it could not be written (No space left on device); make room"]
    assert not audit.is_enabled
