"""What a notebook sends arrives as it was, or is refused by name."""

import json
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from pliant.core.errors import InvalidInput
from pliant.ibm.notebook.shipment import SCRIPT, local_modules, write_shipment

CELL = """
import torch
SCALE = 3.0

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return SCALE * self.layer(x)

def datasets():
    return [SCALE], None
"""


def cell(name: str = "__main__") -> dict[str, Any]:
    """Return what a cell has defined, as a kernel has it: in a module without a file."""
    names: dict[str, Any] = {"__name__": name}
    exec(CELL, names)
    return names


def ship(folder: Path, model: dict[str, Any], beside: Path, modules: dict[str, Any] | None = None) -> Path:
    folder.mkdir()
    write_shipment(folder, model, {"epoch_number": 2}, beside=beside, modules=modules or {})
    return folder


def test_classes_and_functions_of_cells_travel_and_the_optimizer_stays_that_of_the_model(tmp_path: Path) -> None:
    here = cell()
    net = here["Net"]()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    sent = {"model": net, "optimizer": optimizer, "datasets_function": here["datasets"]}
    folder = ship(tmp_path / "code", sent, tmp_path)
    call = torch.load(folder / "sent" / "call.pt", map_location="cpu", weights_only=False)
    assert call["train"] == {"epoch_number": 2}
    got = call["model"]
    x = torch.ones(1, 2)
    assert torch.equal(got["model"](x), net(x))
    assert got["datasets_function"]() == ([3.0], None)
    ours = [id(one) for group in got["optimizer"].param_groups for one in group["params"]]
    assert ours == [id(one) for one in got["model"].parameters()]
    assert json.loads((folder / "sent" / "python.json").read_text()) == list(sys.version_info[:2])
    compile((folder / SCRIPT).read_text(), SCRIPT, "exec")


def test_every_part_that_cannot_be_sent_is_named(tmp_path: Path) -> None:
    lock = threading.Lock()
    stuck = (number for number in range(3))
    sent = {"model": nn.Linear(1, 1), "loss_function": lambda: lock, "fn_test": stuck, "metrics": None}
    with pytest.raises(InvalidInput) as caught:
        ship(tmp_path / "code", sent, tmp_path)
    assert {problem.field for problem in caught.value.problems} == {"loss_function", "fn_test"}
    assert "cannot pickle '_thread.lock' object" in str(caught.value)


def test_modules_of_the_notebooks_folder_go_along_and_no_others(tmp_path: Path) -> None:
    beside = tmp_path / "work"
    for name in (
        "helpers.py",
        "unused.py",
        "lib/__init__.py",
        "lib/steps.py",
        "lib/data/x.txt",
        "lib/__pycache__/s.pyc",
    ):
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).write_text("")
    (tmp_path / "outside.py").write_text("")
    imported = {
        "helpers": beside / "helpers.py",
        "lib": beside / "lib" / "__init__.py",
        "lib.steps": beside / "lib" / "steps.py",
        "outside": tmp_path / "outside.py",
    }
    modules: dict[str, Any] = {"__main__": ModuleType("__main__"), "odd": None}
    for name, path in imported.items():
        modules[name] = ModuleType(name)
        modules[name].__file__ = str(path)
    assert local_modules(beside, modules) == (beside / "helpers.py", beside / "lib")
    folder = ship(tmp_path / "code", {"model": nn.Linear(1, 1)}, beside, modules)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in there if not name.startswith(("sent", SCRIPT))} == {
        "helpers.py",
        "lib/__init__.py",
        "lib/steps.py",
        "lib/data/x.txt",
    }
