"""Reports of searches: charts of odd data, the page, and the command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.cli.conftest import Run
from tests.tiny_searches import SETTINGS, page, search_server, trial, view

from pliant.api.pool import UsagePage
from pliant.api.searches import ImportancesView
from pliant.cli.searches.report.axis import axis_of
from pliant.cli.searches.report.page import SearchReport, write_page
from pliant.cli.searches.report.slots import slots_over_time
from pliant.cli.searches.report.write import draw_charts
from pliant.core.event import Usage
from pliant.core.job import JobId
from pliant.core.search import Constraint, SearchSettings, Trial, TrialState
from pliant.core.space import SearchParameter

WIDE = replace(
    SETTINGS,
    parameters={
        "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True),
        "act": SearchParameter(kind="choice", choices=("relu", True, 1, None, (64, (32, 16)), "x" * 200)),
        "only": SearchParameter(kind="choice", choices=("one",)),
        "drop": SearchParameter(kind="float", low=0.0, high=1.0, when={"act": ("relu",)}),
        "seed": SearchParameter(kind="fixed", value=3),
        **{f"a_rather_long_name_{i}": SearchParameter(kind="int", low=-(2**53), high=2**53) for i in range(12)},
    },
)


def report_of(
    trials: Sequence[Trial], settings: SearchSettings = SETTINGS, usage: Sequence[Usage] = ()
) -> SearchReport:
    slots = slots_over_time(trials, UsagePage(points=tuple(usage), now=100.0), None)
    return SearchReport(
        view=view(settings=settings),
        trials=tuple(trials),
        best=tuple(one for one in trials if one.state is TrialState.COMPLETED)[:10],
        importances=ImportancesView(importances={"lr": 0.75, "act": 0.25}, reason=""),
        slots=slots,
    )


def used(number: int, *steps: tuple[float, int]) -> list[Usage]:
    return [Usage(job_id=JobId(f"job-{number + 10}"), at=at, num_slots=num) for at, num in steps]


@pytest.mark.parametrize(
    "trials",
    [
        [],
        [trial(0)],
        [trial(number) for number in range(5)],
        [trial(0, results=(nan,)), trial(1, results=(inf,)), trial(2, results=(-inf,)), trial(3, results=(1e300,))],
        [trial(0, results=(-1e300,)), trial(1, results=(1e300,)), trial(2, results=(5e-324,))],
        [trial(number, state=TrialState.FAILED, results=None, reports=()) for number in range(3)],
        [trial(0, job_id=JobId(""), values={"lr": 1e-5}), trial(1, values={})],
        [trial(number, results=(10.0**-number,)) for number in range(30)],
    ],
)
def test_charts_of_odd_trials_are_images_of_their_size(trials: list[Trial]) -> None:
    charts = draw_charts(report_of(trials, usage=used(0, (1.0, 2), (50.0, 0))))

    for canvas in charts.values():
        image = canvas.png()
        assert image.size == (1200, 700)
        assert len(image.getcolors(1 << 20) or ()) > 1, "it is not empty"


def test_charts_have_room_for_many_parameters_and_trials() -> None:
    trials = [
        trial(
            number,
            values={"lr": 0.01, "act": ("relu", True, 1, None, (64, (32, 16)))[number % 5], "only": "one", "seed": 3},
            results=(number * 0.1,),
        )
        for number in range(10_000)
    ]
    charts = draw_charts(report_of(trials, WIDE, [one for i in range(200) for one in used(i, (i / 4, 1), (90.0, 0))]))

    assert {canvas.png().size for canvas in charts.values()} == {(1200, 700)}


@given(st.lists(st.floats(), max_size=6), st.booleans())
@settings(max_examples=300)
def test_an_axis_holds_its_values_and_a_few_round_ones(values: list[float], log: bool) -> None:
    axis = axis_of(values, log=log)

    ticks = axis.ticks()

    assert axis.low < axis.high
    assert all(0.0 <= axis.place(value) <= 1.0 for value in (*ticks, *filter(isfinite, values)))
    assert ticks == sorted(ticks)
    assert len(ticks) <= 20


def test_slots_are_those_of_the_searchs_jobs_until_its_end() -> None:
    usage = [*used(0, (0.0, 2), (3600.0, 0)), *used(1, (1800.0, 4)), *used(9, (0.0, 8))]
    usage.sort(key=lambda one: one.at)

    history = slots_over_time([trial(0), trial(1)], UsagePage(points=tuple(usage), now=9000.0), 5400.0)

    assert history.times == (0.0, 1800.0, 3600.0, 5400.0)
    assert [(row.trial, row.slots) for row in history.rows] == [(0, (2, 2, 0, 0)), (1, (0, 4, 4, 4))]
    assert history.slot_hours == pytest.approx(6.0)


def test_the_page_says_what_was_decided_in_numbers() -> None:
    pruned = [trial(number, state=TrialState.PRUNED, reports=((1, 0.9),)) for number in (1, 2)]
    known = trial(3, job_id=JobId(""))

    text = write_page(report_of([trial(0), *pruned, known]), {"Slots": "slots.png"})

    assert "| trials | 1 completed, 2 pruned |" in text
    assert "| pruned | 2 at epoch 1 |" in text
    assert "| 0 | 0.5 | 0.01 | relu | job-10 |" in text
    assert "![Slots](slots.png)" in text


def test_the_page_and_the_charts_tell_who_violates_constraints() -> None:
    bound = replace(SETTINGS, constraints=(Constraint(metric="memory", upper=8.0),))
    trials = [trial(number, results=(0.1 * number,), violations=(2.0 - number,)) for number in range(4)]
    report = report_of(trials, bound)
    none = replace(report, best=(), view=replace(report.view, best=None, nearest=1))

    assert "| violate them | 2 trials that completed |" in write_page(report, {})
    assert "| constraints | memory&lt;=8 |" in write_page(report, {})
    assert "No trial keeps memory&lt;=8; trial 1 is nearest." in write_page(none, {})
    drawn = draw_charts(report)
    plain = draw_charts(report_of([replace(one, violations=()) for one in trials], bound))
    for name in ("history.png", "values.png"):
        assert drawn[name].png().tobytes() != plain[name].png().tobytes()


def test_what_people_have_written_is_no_markdown() -> None:
    report = report_of([])
    described = replace(report.view.settings, description="<b>|\n# [x](y)")

    text = write_page(replace(report, view=replace(report.view, settings=described)), {})

    assert r"&lt;b>\| \# \[x\](y)" in text


def test_the_command_writes_it_and_says_where(run: Run, tmp_path: Path) -> None:
    with search_server() as server:
        server.answer("GET /v1/searches/digits", view())
        server.answer("GET /v1/searches/digits/trials", page(trial(0), trial(4)))
        server.answer("GET /v1/searches/digits/best", page(trial(4)))
        server.answer("GET /v1/searches/digits/importances", ImportancesView(importances={}, reason="too few"))
        server.answer("GET /v1/usage", UsagePage(points=tuple(used(4, (1.0, 2))), now=50.0))
        done = run(server, "searches", "report", "digits", "--output", str(tmp_path / "out"))
        again = run(server, "searches", "report", "digits", "-o", str(tmp_path / "out"), "--json")

    assert done.out.endswith("out/report.md is the report of digits\n")
    assert json.loads(again.out) == {"page": str(tmp_path / "out" / "report.md")}
    for name in ("history.png", "importances.png", "values.png", "slots.png"):
        with Image.open(tmp_path / "out" / name) as image:
            assert image.size == (1200, 700)
