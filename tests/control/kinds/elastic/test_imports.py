"""Code that cannot train elastically is recognised by what it imports; in doubt it can."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pliant.control.kinds.elastic import imports
from pliant.control.kinds.elastic.imports import can_train_elastically

PLAIN = "import argparse\nimport torch\nfrom torch import nn\nmodel = nn.Linear(2, 1)\nmodel.eval()\n"
ELASTIC = "import torch\nfrom pliant.train import Run\n"
Can = Callable[..., bool]


@pytest.fixture
def can(tmp_path: Path) -> Can:
    """Return what tells whether `train.py`, beside other files, can train elastically."""

    def ask(train: str, *, args: Sequence[str] = (), **others: str) -> bool:
        for name, text in {"train": train, **others}.items():
            path = tmp_path / name.replace("__in__", "/")
            path = path.with_name(f"{path.name}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return can_train_elastically(tmp_path / "train.py", tmp_path, args)

    return ask


def test_a_script_that_imports_keras_or_tensorflow_alone_cannot(can: Can) -> None:
    assert not can("import tensorflow as tf\nfrom tensorflow import keras\nkeras.Sequential().fit()")


def test_a_plain_script_cannot_whatever_lies_beside_it(can: Can) -> None:
    assert not can(PLAIN)
    assert not can(PLAIN, elastic=ELASTIC)
    assert not can(PLAIN + "import data\nfrom lib import steps\n", data="", lib__in__steps=PLAIN, other=ELASTIC)


@pytest.mark.parametrize(
    "line",
    [
        "from pliant.train import Run",
        "import pliant.train as p",
        "import pliant",
        "from pliant.integrations.transformers import elastic",
        "from fabric_model import FabricModel",
        "import pyedt.model",
        "import tensorflow as tf\nfrom fabric_model import FabricModel\nmodel = tf.keras.Sequential()",
        "import keras\nfrom pliant.integrations.keras import fit",
        "from pliant.integrations.lightning import ElasticStrategy",
        "import pliant.integrations.pytorch_lightning as elastic",
        "import importlib; run = importlib.import_module('pliant.train')",
        "run = __import__('pliant.train')",
        "exec('from pliant.train import Run')",
        "if False:\n    import pliant.train",
        "def later():\n    from pliant import train",
    ],
)
def test_what_trains_elastically_is_found_wherever_it_is_imported(can: Can, line: str) -> None:
    assert can(line)
    assert can("import steps", steps=line)


@pytest.mark.parametrize(
    "train",
    [
        "import lib.steps",
        "from lib import steps",
        "from lib.steps import *",
        "import importlib; importlib.import_module('lib.steps')",
        "from steps import fit",
        "import runpy; runpy.run_path('lib/steps.py')",
        "exec(open('lib/steps.py').read())",
        "import subprocess, sys; subprocess.run([sys.executable, 'lib/steps.py', '--epochs', '3'])",
        "import sys; exec(open(sys.argv[1]).read())",
    ],
)
def test_modules_of_the_folder_are_followed_however_they_are_reached(can: Can, train: str) -> None:
    assert can(train, lib__in__steps="from lib import deep", lib__in__deep=ELASTIC)
    assert not can(train, lib__in__steps="from lib import deep", lib__in__deep=PLAIN)


def test_a_package_is_followed_by_its_name_and_a_file_that_an_argument_names(can: Can) -> None:
    assert can("import lib", lib__in____init__=ELASTIC)
    assert can(PLAIN, args=("--run", "other.py"), other=ELASTIC)


@pytest.mark.parametrize(
    ("train", "others"),
    [
        ("import importlib, sys; importlib.import_module(sys.argv[1])", {}),
        ("__import__('plug' + 'in')", {}),
        ("import broken", {"broken": "def ("}),
    ],
    ids=["a computed import", "another one", "a module that does not parse"],
)
def test_in_doubt_it_can(can: Can, train: str, others: dict[str, str]) -> None:
    assert can(train, **others)


def test_of_a_compiled_module_and_of_very_much_code_nothing_is_known(
    can: Can, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    assert can("import fast")
    assert not can(PLAIN)
    monkeypatch.setattr(imports, "MAX_MODULES", 3)
    assert can(PLAIN, a="", b="", c="")
    monkeypatch.setattr(imports, "MAX_MODULES", 500)
    monkeypatch.setattr(imports, "MAX_SOURCE_BYTES", 100)
    assert can("import a", a="#" * 100)
