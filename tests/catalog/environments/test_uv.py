"""Environments that the real uv builds, from wheels that the tests make; what it cannot build it says itself."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata, util

import pytest
from tests.catalog.environments.wheels import tiny_wheel
from tests.catalog.house import ADA, PATIENCE_S, House

from pliant.core.preparation import Prepared, Unpreparable

PROGRAM = """
import importlib.util, iniconfig, ofthecode, tinything
print(tinything.ANSWER, ofthecode.ANSWER, iniconfig.ANSWER, importlib.util.find_spec("torch").origin)
"""

pytestmark = pytest.mark.timeout(4 * PATIENCE_S)  # environments are really built


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("uv"), uv=True)
    yield made
    made.close()


def output_of(python: str, program: str) -> str:
    command = [python, "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd="/"
    ).stdout.strip()


def test_uv_builds_what_pip_would_and_leaves_the_servers_packages_alone(house: House) -> None:
    """`iniconfig` is a package of the server's that the requirements replace, for this environment only."""
    servers_torch = util.find_spec("torch")
    assert servers_torch is not None
    servers_own = output_of(sys.executable, "import iniconfig; print(iniconfig.__file__)")
    own = tiny_wheel(house.code, name="ofthecode", version="3")
    other = tiny_wheel(house.code, name="iniconfig", version="99")

    requirements = house.requirements(f"tinything >=1.0\notherthing\ntorch\n./{own.name}\n./{other.name}\n")
    ready = house.until_known(house.job(requirements))

    assert isinstance(ready, Prepared), ready
    assert output_of(ready.python, PROGRAM) == f"1.0 3 99 {servers_torch.origin}"
    (view,) = house.environments.page(ADA, "", 10).environments
    assert view.builder == f"uv {metadata.version('uv')}"
    assert "Installed 4 packages" in house.environments.log(view.name, ADA), "torch is there"
    assert output_of(sys.executable, "import iniconfig; print(iniconfig.__file__)") == servers_own


@pytest.mark.parametrize(
    ("requirements", "headline", "said"),
    [
        ("tinything==7", "Because there is no version of tinything==7", "No solution found"),
        ("numpyy", "Because numpyy was not found in the provided package locations", "No solution found"),
        ("torch==1.0", "torch==1.0", "your requirements are unsatisfiable"),
        (f"tinything==1.0 --hash=sha256:{0:064d}", "Hash mismatch for `tinything==1.0`", "Computed:"),
    ],
    ids=["no such version", "no such package", "another torch", "another file"],
)
def test_what_uv_cannot_build_is_told_in_its_own_words(
    house: House, requirements: str, headline: str, said: str
) -> None:
    broken = house.until_known(house.job(house.requirements(requirements, "broken.txt")))
    assert isinstance(broken, Unpreparable)
    first, *output = broken.why.splitlines()
    assert headline in first
    assert "no slot was taken" in first
    assert said in "\n".join(output)
