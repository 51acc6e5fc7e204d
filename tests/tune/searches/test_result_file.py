"""IBM's file of metrics, which a stranger's script has written."""

import json
import os
from math import isnan
from pathlib import Path

import pytest

from pliant.files.untrusted.path import UntrustedPath
from pliant.policy.tuning.intake import SeriesPoint
from pliant.tune.searches.result_file import FILE, read_results


def read(folder: Path, text: str) -> object:
    (folder / "result").mkdir()
    (folder / "result" / FILE).write_text(text)
    return read_results(UntrustedPath(folder, "result"))


def test_each_metric_is_a_series_by_steps(tmp_path: Path) -> None:
    found = read(tmp_path, '[{"steps": 1, "accuracy": 0.5, "loss": 2}, {"step": 4, "accuracy": 0.75}]')

    assert found == {
        "accuracy": [SeriesPoint(epoch=1, step=1, value=0.5), SeriesPoint(epoch=4, step=4, value=0.75)],
        "loss": [SeriesPoint(epoch=1, step=1, value=2.0)],
    }


def test_nan_is_a_value(tmp_path: Path) -> None:
    found = read(tmp_path, '[{"steps": 1, "loss": NaN}]')

    assert isinstance(found, dict)
    assert isnan(found["loss"][0].value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "{}",
        "3",
        "[3, null, [1]]",
        '[{"steps": 1, "loss": "0.5", "ok": true}]',
        "[" * 100_000,
        '[{"a": 1e999}]',
    ],
)
def test_what_is_no_such_list_is_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == {}


def test_a_number_that_is_no_step_is_counted_instead(tmp_path: Path) -> None:
    found = read(tmp_path, json.dumps([{"steps": "x", "loss": 1.0}, {"steps": 1e300, "loss": 2.0}]))

    assert found == {"loss": [SeriesPoint(epoch=1, step=1, value=1.0), SeriesPoint(epoch=2, step=2, value=2.0)]}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('[{"steps": 1, "loss": 1}]')
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / FILE).symlink_to(tmp_path / "secret")

    assert read_results(UntrustedPath(tmp_path, "result")) == {}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    os.mkfifo(tmp_path / "result" / FILE)

    assert read_results(UntrustedPath(tmp_path, "result")) == {}
