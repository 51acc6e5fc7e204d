"""The recipes of the guide run, learn, and come to the same bits alone and with two workers."""

import os
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.train.crew import run_in
from tests.warm import run_script

from pliant.train.context import TRAIN_CONTEXT

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
NAMES = tuple(sorted(path.stem for path in RECIPES.glob("*.py")))
LIMIT_S = 170
"""Each takes a few seconds on a machine that is free."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]
BEST = {
    "mnist": (r"Average loss: (\S+),", 1.0),
    "nanogpt": (r"val loss (\S+)", 1.5),
    "vae": (r"Test set loss: (\S+)", 36.0),
    "word_language_model": (r"valid loss +(\S+)", 1.5),
}
"""Where the loss of every recipe is printed, and what it ends below; they begin at 2.3, 2.5, 44 and 3.7."""


def play(names: Sequence[str], folder: str) -> dict[str, str]:
    """Run recipes one after the other as one of the tasks of a crew; return the digests of what they trained."""
    context, found = TRAIN_CONTEXT.get(), {}
    sys.argv = ["recipe.py"]
    for name in names:
        context.result_dir = Path(folder, name)
        runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
        found[name] = (context.result_dir / "model" / "digest").read_text()
    return found


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What two workers make of every recipe."""
    first, second = run_in(2, play, names=NAMES, folder=str(tmp_path_factory.mktemp("two")))
    assert first == second
    return dict(first)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_learns_and_comes_to_the_same_bits_alone_and_with_two_workers(
    name: str, tmp_path: Path, by_two: dict[str, str]
) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PLIANT_")}
    env |= {"RESULT_DIR": str(tmp_path), "OMP_NUM_THREADS": "1", "PLIANT_VIRTUAL_WORKERS": "8"}
    done = run_script(RECIPES / f"{name}.py", folder=tmp_path, env=env, warnings_fail=True)

    assert (done.returncode, done.stderr) == (0, ""), "and no loss looks like what it is not said to be"
    pattern, best = BEST[name]
    assert float(re.findall(pattern, done.stdout)[-1]) < best
    assert (tmp_path / "model" / "digest").read_text() == by_two[name]
    percents = [int(text) for text in re.findall(r"\((\d+)%\)\]?\tLoss", done.stdout)]
    assert percents == {"mnist": [0, 40, 80] * 3, "vae": [0, 50] * 4}.get(name, [])
