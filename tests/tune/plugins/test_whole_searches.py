"""Whole searches by algorithms of people's own: through killed servers, to their end, and as the page shows them."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tune.adviser.played import MIXED, Kind, play
from tests.tune.plugins.ibm.samples import KEPT, SHARED
from tests.tune.searches.world import World, settings_of

from pliant.core.search import Halving, SearchState
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser.folder_sampler import folder_adviser
from pliant.tune.adviser_process import AdviserProgram
from pliant.tune.plugins.ibm.ibm_adviser import IbmAdviser
from pliant.tune.plugins.plugin_adviser import PluginAdviser

FolderOf = Callable[..., Path]
PAGE = Path(__file__).parents[3] / "docs" / "algorithms.md"


@pytest.mark.parametrize("code", [SHARED, KEPT], ids=["shared", "kept"])
def test_a_search_through_killed_servers_is_the_same(tmp_path: Path, folder_of: FolderOf, code: str) -> None:
    folder = folder_of(code)

    def played(*kills: tuple[int, bool]) -> list[object]:
        name = "-".join(map(str, kills)).replace(" ", "") or "undisturbed"
        world = World(tmp_path / name, open_adviser=lambda opening: IbmAdviser(opening, folder))
        world.folder.mkdir()
        world.create(settings_of(halving=Halving(min=1, max=9, factor=3), max_trials=9))
        for number, done in kills:
            world.searches.kill_at = (world.searches.num_writes + number, done)
            world.settle(killed=True)
            world.jobs.train(1)
        assert world.play(killed=True).state is SearchState.COMPLETED
        return world.outcome()

    assert played((3, True), (2, False), (1, True)) == played()


def test_one_that_never_answers_fails_its_search_with_one_sentence(tmp_path: Path) -> None:
    program = AdviserProgram(
        command=(sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"),
        env={},
        deadline_s=0.2,
        called="the algorithm my-search",
    )
    world = World(tmp_path, open_adviser=lambda opening: PluginAdviser(opening, program))
    world.create()
    world.settle()

    assert world.search.state is SearchState.FAILED
    assert world.search.reason == (
        "what chooses its values was lost 3 times in a row: "
        "the algorithm my-search does not answer for 0.2 s (exit code -9)"
    )


def example(file: str) -> str:
    """Return the code of a file as the page has it."""
    (code,) = re.findall(rf"```python\n(# {re.escape(file)}\n.*?)```", PAGE.read_text(), re.DOTALL)
    return str(code)


@pytest.mark.parametrize(
    ("file", "made"), [("optimizer.py", IbmAdviser), ("sampler.py", folder_adviser)], ids=["ibm", "optuna"]
)
def test_what_the_page_shows_works_and_goes_on(
    folder_of: FolderOf, file: str, made: Callable[[AdviserInput, Path], Adviser]
) -> None:
    folder = folder_of(example(file), file)
    space = {"lr": MIXED["lr"], "width": replace(MIXED["width"], step=None), "act": MIXED["act"], "seed": MIXED["seed"]}
    kind = Kind(name="random", space=space, num_trials=12)

    values = play(kind, lambda opening: made(opening, folder))

    assert len({str(one) for one in values}) > 6
    assert play(kind, lambda opening: made(opening, folder), renewed=lambda number: number in (4, 9)) == values
