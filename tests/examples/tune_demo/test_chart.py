"""The picture that the demo leaves, and the line of a search on the live screen."""

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.examples.tune_demo.conftest import T0

from examples.demo.recording import Seen
from examples.demo.screen import render
from examples.tune_demo.chart import best_so_far, draw
from examples.tune_demo.scenario import TuneOutcome


def test_the_chart_is_a_png(seen: Seen, outcome: TuneOutcome, tmp_path: Path) -> None:
    draw(seen, (outcome.elastic, outcome.rigid), tmp_path / "tuning.png")

    assert (tmp_path / "tuning.png").read_bytes().startswith(b"\x89PNG")


def test_the_best_value_so_far_falls_only_when_a_trial_has_ended(outcome: TuneOutcome) -> None:
    run = outcome.elastic

    assert best_so_far(run) == ([7.0, 18.0], [0.75, 0.25])
    worse = replace(run.trials[0], results=(0.9,))
    assert best_so_far(replace(run, trials=(worse, run.trials[1]))) == ([7.0], [0.75])
    assert best_so_far(replace(run, trials=())) == ([], [])


def test_the_screen_shows_the_search_in_a_line_and_no_row_for_each_trial(seen: Seen) -> None:
    console = Console(file=io.StringIO(), width=120, height=40)
    with console.capture() as capture:
        console.print(render(replace(seen, now=T0 + 60.0), 120, 40))
    lines = capture.get().splitlines()

    assert any(
        "rigid completed: 7/40 trials ended, 3 train, 2 wait at a rung, best val_loss 0.25" in one for one in lines
    )
    assert not any("rigid #0" in one for one in lines)
