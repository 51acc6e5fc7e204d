"""`make bench` runs what is there, and says what is not."""

import runpy
import sys

import pytest

from bench.__main__ import FOLDER, main, names


def test_an_unknown_benchmark_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2

    assert "no benchmark named nonsense; there are: " in capsys.readouterr().err


@pytest.mark.parametrize("name", names())
def test_every_benchmark_takes_the_file_to_write_its_report_to(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FOLDER / name
    monkeypatch.setattr(sys, "argv", [name, "--help"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(
            str(folder / "__main__.py" if folder.is_dir() else folder.with_suffix(".py")), run_name="__main__"
        )

    assert ended.value.code == 0
    assert "--out" in capsys.readouterr().out
