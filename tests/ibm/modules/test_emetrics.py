"""The file formats are IBM's to the byte."""

import json
import re
from pathlib import Path

import pytest

from pliant.ibm.modules.emetrics import EMetrics


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "log"))
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    monkeypatch.setenv("TRAINING_ID", "job-7")
    return tmp_path


def test_a_record_is_one_line_in_ibms_format(folder: Path) -> None:
    with EMetrics.open() as metrics:
        metrics.record(EMetrics.TEST_GROUP, 12, {"loss": 0.25, "right": 9, "note": "fine"})

    (line,) = (folder / "log" / "evaluation-metrics.txt").read_text().splitlines()
    generalised = re.sub(r"\d{13}", "MS", re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+", "STAMP", line))
    assert generalised == (
        '{"meta": {"training_id": "job-7", "time": MS, "rindex": 1}, "grouplabel": "test", "etimes": '
        '{"iteration": {"type": 2, "value": "12"}, "time_stamp": {"value": "STAMP"}}, "values": '
        '{"loss": {"type": 3, "value": "0.25"}, "right": {"type": 2, "value": "9"}, "note": {"value": "fine"}}}'
    )


def test_records_are_appended(folder: Path) -> None:
    for iteration in range(3):
        with EMetrics.open() as metrics:
            metrics.record(EMetrics.TRAIN_GROUP, iteration, {"loss": 0.5})

    lines = [json.loads(line) for line in (folder / "log" / "evaluation-metrics.txt").read_text().splitlines()]
    assert [(line["grouplabel"], line["etimes"]["iteration"]["value"]) for line in lines] == [
        ("train", "0"),
        ("train", "1"),
        ("train", "2"),
    ]


def test_a_trial_leaves_its_test_metrics_for_the_search(folder: Path) -> None:
    with EMetrics.open("3") as metrics:
        metrics.record(EMetrics.TRAIN_GROUP, 1, {"loss": 0.9})
        metrics.record(EMetrics.TEST_GROUP, 1, {"accuracy": 0.6})
        metrics.record(EMetrics.TEST_GROUP, 2, {"accuracy": 0.7})

    assert (folder / "val_dict_list.json").read_text() == (
        '[{"steps": 1, "accuracy": 0.6}, {"steps": 2, "accuracy": 0.7}]'
    )
    line = json.loads((folder / "log" / "3" / "evaluation-metrics.txt").read_text().splitlines()[0])
    assert line["meta"]["subid"] == "3"


def test_without_a_sub_id_no_file_for_the_search_is_written(folder: Path) -> None:
    with EMetrics.open() as metrics:
        metrics.record(EMetrics.TEST_GROUP, 1, {"accuracy": 0.6})

    assert not (folder / "val_dict_list.json").exists()


def test_without_a_log_folder_the_state_folder_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOG_DIR")
    monkeypatch.setenv("JOB_STATE_DIR", str(folder / "state"))

    EMetrics.open().close()

    assert (folder / "state" / "logs" / "evaluation-metrics.txt").exists()
