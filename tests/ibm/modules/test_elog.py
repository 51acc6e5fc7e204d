"""The lines are IBM's."""

import re
from pathlib import Path

import pytest

from pliant.ibm.modules.elog import ELog


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    return tmp_path / "stdout"


def generalised(log: Path) -> list[str]:
    text = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]", "[AT]", log.read_text())
    return re.sub(r"\d{13}", "MS", text).splitlines()


def test_text_follows_the_time(log: Path) -> None:
    with ELog.open() as elog:
        elog.recordText("it begins")

    assert generalised(log) == ["[AT] it begins"]


def test_training_and_test_lines_have_ibms_fields(log: Path) -> None:
    with ELog.open() as elog:
        elog.recordTrain("Train", 40, 5, 0.1234567, 0.5, 0)
        elog.recordTest("Test", 0.2, 0.98, 0)

    assert generalised(log) == [
        "[AT] Train,\tTimestamp: MS,\tGlobal steps: 5,\tIteration: 40,\tLoss: 0.12346,\tAccuracy: 0.5",
        "[AT] Test,\tTimestamp: MS,\tLoss: 0.2,\tAccuracy: 0.98",
    ]


def test_metrics_may_come_as_a_mapping(log: Path) -> None:
    with ELog.open() as elog:
        elog.recordTrain("Train", 40, 5, {"loss": 0.25, "accuracy": 0.5})
        elog.recordTest("Test", {"loss": 0.25})

    assert generalised(log) == [
        "[AT] Train,\tTimestamp: MS,\tGlobal steps: 5,\tIteration: 40,\tLoss: 0.25,\tAccuracy: 0.5",
        "[AT] Test,\tTimestamp: MS,\tLoss: 0.25",
    ]


def test_a_sub_id_has_a_folder_of_its_own(log: Path) -> None:
    ELog.open("9").close()

    assert (log.parent / "9" / "stdout").exists()
