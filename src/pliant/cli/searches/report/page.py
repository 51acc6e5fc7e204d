"""The page of a report, as Markdown. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pliant.api.searches import ImportancesView, SearchView
from pliant.cli import formatting
from pliant.cli.searches.report.slots import SlotHistory
from pliant.cli.searches.tables import say_no_best
from pliant.client.nouns.search_line import best_of, no_best, results_of, short, words_of
from pliant.core.search import Trial, TrialState
from pliant.core.search_text import write_constraint, write_objective
from pliant.core.space_text import write_domain


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """All that a report says."""

    view: SearchView
    trials: tuple[Trial, ...]
    best: tuple[Trial, ...]
    """The best that have completed, the best first."""
    importances: ImportancesView
    slots: SlotHistory


def write_page(report: SearchReport, images: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        images: files of charts, by what they show.
    """
    view = report.view
    lines = [f"# {_plain(view.name)}", ""]
    lines += [f"It is {view.state.value}{f': {_plain(view.reason)}' if view.reason else ''}.", ""]
    if view.settings.description:
        lines += [_plain(view.settings.description), ""]
    lines += [*_table(("", ""), _numbers(report)), "", "## The best trials", ""]
    lines += [*_best(report), ""]
    for title, name in images.items():
        lines += [f"## {title}", "", f"![{title}]({name})", ""]
    lines += ["## What may be chosen", "", *_table(("parameter", "values"), _space(view)), ""]
    return "\n".join(lines)


def _numbers(report: SearchReport) -> Iterator[tuple[str, str]]:
    view = report.view
    yield "objective", ", ".join(map(write_objective, view.settings.objectives))
    if view.best is not None:
        yield "best", f"{best_of(view)} (trial {view.best.number}: {words_of(view.best)})"
    elif said := no_best(view):
        yield "best", said
    if view.settings.constraints:
        yield "constraints", ", ".join(map(write_constraint, view.settings.constraints))
        num = sum(not one.is_feasible for one in report.trials if not one.is_known)
        yield "violate them", f"{formatting.count_of(num, 'trial')} that completed" if num else "no trial"
    counts = Counter(one.state for one in report.trials if not one.is_known)
    yield "trials", ", ".join(f"{counts[state]} {state.value}" for state in TrialState if counts[state]) or "none"
    if view.num_known:
        yield "known before", str(view.num_known)
    yield from _rungs(report)
    yield "ran", formatting.duration(view.ran_s)
    yield "slot-hours", f"{report.slots.slot_hours:.3g}"
    yield "sampler", f"{view.settings.sampler.name}, seed {view.settings.sampler.seed}"


def _rungs(report: SearchReport) -> Iterator[tuple[str, str]]:
    """Yield how many trials were pruned after each epoch or step."""
    halving = report.view.settings.halving
    pruned = [one for one in report.trials if one.state is TrialState.PRUNED and not one.is_known]
    at = Counter(one.reports[-1][0] for one in pruned if one.reports)
    if at:
        what = "epoch" if halving is None else halving.resource
        shown = [f"{number} at {what} {place}" for place, number in sorted(at.items())[:20]]
        yield "pruned", ", ".join(shown) + ", …" * (len(at) > 20)


def _best(report: SearchReport) -> list[str]:
    if not report.best:
        return [_plain(say_no_best(report.view))]
    names = [name for name, one in report.view.settings.parameters.items() if one.kind != "fixed"]
    metrics = ", ".join(one.metric for one in report.view.settings.objectives)
    rows = [
        (
            str(one.number),
            results_of(one),
            *(short(one.values[name]) if name in one.values else "" for name in names),
            one.job_id,
        )
        for one in report.best
    ]
    return [*_table(("trial", metrics, *names, "job"), rows)]


def _space(view: SearchView) -> Iterator[tuple[str, str]]:
    for name, parameter in view.settings.parameters.items():
        yield name, write_domain(parameter)


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_plain, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_plain, row))} |"


def _plain(text: str) -> str:
    """Return a text that is no Markdown: what people have written stays what it is."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in r"\`*_[]|#!" else sign for sign in text)
