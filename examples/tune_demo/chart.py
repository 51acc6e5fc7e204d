"""The picture that the demo leaves: slots by trial over time in both searches, and the best value so far below.

Pure but for the file it writes: it draws what was seen.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from examples.demo.chart import COLOURS, INK, layers
from examples.demo.recording import Seen
from examples.tune_demo.scenario import METRIC, Run
from pliant.core.job import JobId
from pliant.core.search import Trial, TrialState

TITLE = "The same search twice beside a training: trials that grow and shrink, and trials of a fixed size"
GREY = "#b9bdc4"
TRIAL_COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#4a3fb5"
)  # fmt: skip
PALE = 0.35


def draw(seen: Seen, runs: Sequence[Run], path: Path) -> None:
    """Write the chart as a PNG image."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 7.4), dpi=150, layout="constrained")
    figure.suptitle(TITLE, x=0.01, ha="left", fontsize=13, color=INK)
    axes = figure.subplots(2, len(runs), sharex=True, sharey="row", height_ratios=(3, 2), squeeze=False)
    for slots, best, run in zip(axes[0], axes[1], runs, strict=True):
        _draw_slots(slots, seen, run)
        _draw_best(best, run)
        for one in (slots, best):
            one.axvline(run.took_s, color=INK, linewidth=1, linestyle=(0, (2, 2)))
            one.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("slots")
    axes[1][0].set_ylabel(f"{METRIC} at a trial's end, or so far")
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5)
    figure.savefig(path)


def best_so_far(run: Run) -> tuple[list[float], list[float]]:
    """Return when the lowest value of all trials that had ended fell, in seconds since the start, and to what."""
    instants: list[float] = []
    values: list[float] = []
    ended = sorted((trial.ended_at, trial.results[0]) for trial in run.trials if trial.ended_at and trial.results)
    for at, value in ended:
        if not values or value < values[-1]:
            instants.append(at - run.began_at)
            values.append(value)
    return instants, values


def _draw_slots(axes: Axes, seen: Seen, run: Run) -> None:
    instants = _instants(seen, run)
    rows: list[list[int]] = []
    labels, colours = [], []
    for job_id, label, colour in _jobs(run):
        training, besides = layers(seen, job_id, instants)
        rows += [training, besides]
        labels += [label, "_starts or leaves"]
        colours += [(*colour, 1.0), (*colour, PALE)]
    elapsed = [at - run.began_at for at in instants]
    axes.stackplot(elapsed, rows, labels=labels, colors=colours, step="post", edgecolor="white", linewidth=0.3)
    axes.axhline(seen.num_slots, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_title(f"{run.label}: {len(run.trials)} trials in {run.took_s:.0f} s", loc="left", fontsize=10.5, color=INK)
    axes.set_ylim(0, seen.num_slots + 0.5)
    axes.set_xlim(left=0)


def _jobs(run: Run) -> list[tuple[JobId, str, tuple[float, float, float]]]:
    """Return the jobs from the bottom up, with names and colours: the training, then the trials."""
    beside = (run.beside, "A trains", to_rgb(GREY))
    trials = [
        (trial.job_id, f"trial {trial.number}", to_rgb(TRIAL_COLOURS[trial.number % len(TRIAL_COLOURS)]))
        for trial in run.trials
    ]
    return [beside, *trials]


def _instants(seen: Seen, run: Run) -> list[float]:
    """Return every instant at which something changed while the run's jobs held slots."""
    jobs = {run.beside, *(trial.job_id for trial in run.trials)}
    held, working = seen.held(), seen.working()
    changes = {at for job_id in jobs for lines in (held, working) if job_id in lines for at in lines[job_id].instants}
    return sorted({run.began_at, *(at for at in changes if at >= run.began_at)})


def _draw_best(axes: Axes, run: Run) -> None:
    for state, marker in ((TrialState.PRUNED, "x"), (TrialState.COMPLETED, "o")):
        chosen = [trial for trial in run.trials if trial.state is state]
        axes.plot(*_points(run, chosen), marker, color=INK, markersize=6, label=f"a trial, {state.value}")
    instants, values = best_so_far(run)
    if instants:
        axes.step([*instants, run.took_s], [*values, values[-1]], where="post", color=COLOURS[0], label="best so far")
    axes.set_yscale("log")
    axes.set_xlabel("time since the search began, seconds")
    axes.legend(loc="lower left", frameon=False, fontsize=8.5)


def _points(run: Run, trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    pairs = [(trial.ended_at - run.began_at, trial.results[0]) for trial in trials if trial.ended_at and trial.results]
    return [x for x, _ in pairs], [y for _, y in pairs]
