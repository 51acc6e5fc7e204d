"""The import contracts hold, and each of them would notice: violations planted in copies of the source are caught."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "pyproject.toml"

PLANTED = [
    ("layers", "core/planted.py", "import pliant.policy"),
    ("layers", "client/planted.py", "import pliant.store"),
    ("layers", "room_that_no_layer_lists/__init__.py", ""),
    ("acyclic", "control/planted.py", "import pliant.control.planted_too"),
    ("core", "policy/planted.py", "import time"),
    ("core", "core/planted.py", "from os import environ"),
    ("core", "core/planted.py", "import logging"),
    ("technology", "core/planted.py", "import pydantic"),
    ("argon2", "server/planted.py", "import argon2"),
    ("cryptography", "people/planted.py", "from cryptography import x509"),
    ("technology", "policy/planted.py", "import numpy"),
    ("technology", "files/planted.py", "import pydantic"),
    ("layers", "files/planted.py", "import pliant.api"),
    ("pillow", "server/planted.py", "import PIL.Image"),
    ("pillow", "cli/planted.py", "import PIL.Image"),
    ("yaml", "client/planted.py", "import yaml"),
    ("prometheus", "control/planted.py", "import prometheus_client"),
    ("prometheus", "server/routes/planted.py", "from prometheus_client import Counter"),
    ("torch", "control/planted.py", "import torch"),
    ("torch", "cli/planted.py", "import pliant.train.planted_too"),
    ("torch-entry", "entry/planted.py", "import torch"),
    ("sqlalchemy", "control/planted.py", "import sqlalchemy"),
    ("sqlalchemy", "entry/planted.py", "from alembic import command"),
    ("fastapi", "entry/planted.py", "import fastapi"),
    ("fastapi", "client/planted.py", "import starlette.testclient"),
    ("grpc", "serve/gateway/planted.py", "import grpc.aio"),
    ("grpc", "entry/planted.py", "import grpc"),
    ("uvicorn", "cli/planted.py", "import uvicorn"),
    ("httpx", "cli/planted.py", "import httpx"),
    ("pydantic", "control/planted.py", "import pydantic"),
    ("terminal", "server/planted.py", "import rich"),
    ("server", "server/planted.py", "import pliant.store"),
    ("ibm", "cli/planted.py", "import pliant.ibm.modules"),
    ("ibm", "ibm/rest/planted.py", "import pliant.ibm.modules"),
    ("ibm-rest", "server/planted.py", "import pliant.ibm.rest"),
    ("ibm-modules", "ibm/modules/planted.py", "import pliant.ibm.rest"),
    ("ibm-kernels", "ibm/modules/redhareapi.py", "import pliant.train"),
    ("optuna", "tune/searches/planted.py", "import optuna"),
    ("optuna", "entry/planted.py", "from optuna import logging"),
    ("optuna", "control/planted.py", "import cmaes"),
    ("fsspec", "objects/planted.py", "import fsspec"),
    ("fsspec", "entry/planted.py", "import s3fs"),
    ("objects", "entry/server/planted.py", "from pliant.objects.store import ObjectStore"),
    ("ray", "cluster/joined/planted.py", "import ray"),
    ("ray-process", "entry/server/planted.py", "from pliant.cluster.ray.membership import RayMembership"),
    ("adviser", "tune/searches/planted.py", "import pliant.tune.adviser"),
    ("adviser", "entry/server/planted.py", "from pliant.tune.adviser import optuna_adviser"),
    ("algorithms", "tune/searches/planted.py", "import pliant.tune.plugins.code"),
    ("algorithms", "entry/server/planted.py", "from pliant.tune.plugins.ibm import ibm_adviser"),
    ("algorithms-alone", "tune/plugins/ibm/planted.py", "import pliant.tune.adviser.state"),
    ("torch", "serve/gateway/planted.py", "import torch"),
    ("integrations", "server/planted.py", "import pliant.integrations"),
    ("integrations-train", "integrations/planted.py", "import pliant.client"),
    ("integrations-train", "integrations/planted.py", "import pydantic"),
    ("integrated", "train/planted.py", "import transformers"),
    ("layers", "train/planted.py", "import pliant.integrations"),
    ("server", "ibm/rest/planted.py", "import pliant.store"),
    ("control", "control/jobs/planted.py", "import pliant.control.loop"),
    ("control", "control/jobs/planted.py", "import pliant.control.kinds"),
    ("control", "control/requests/planted.py", "import pliant.control.kinds"),
    ("control", "control/planted.py", ""),
    ("untrusted", "control/jobs/planted.py", "import shutil"),
    ("train", "train/group/planted.py", "import pliant.train.engine"),
    ("train", "train/data/planted.py", "import pliant.train.state"),
    ("train", "train/sum/planted.py", "import pliant.train.state"),
    ("cluster", "cluster/zygote/planted.py", "import pliant.cluster.agent"),
    ("cluster", "cluster/agent/planted.py", "import pliant.cluster.channel"),
    ("client", "client/http/planted.py", "import pliant.client.nouns.queues"),
    ("catalog", "catalog/models/planted.py", "import pliant.catalog.datasets"),
    ("nouns", "people/planted.py", "import pliant.api.people"),
    ("nouns", "catalog/environments/planted.py", "import pliant.api.environments"),
    ("nouns", "catalog/models/planted.py", "import pliant.api"),
    ("policy", "policy/schedule/planted.py", "import pliant.policy.elastic"),
]
COMPANIONS = {
    "import pliant.control.planted_too": ("control/planted_too.py", "import pliant.control.planted"),
    "import pliant.train.planted_too": ("train/planted_too.py", "import torch"),
}
ALONE = [one for one in PLANTED if not one[2] or one[0] == "acyclic" or not one[1].endswith("/planted.py")]
"""Where it is not the import that is wrong, but that the file is there, or another file with it."""
TOGETHER = [one for one in PLANTED if one not in ALONE]


def contracts() -> list[dict[str, Any]]:
    return list(tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"])


def lint(source: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    command += ["--config", str(CONFIG), "--no-cache", "--no-logo"]
    for contract in contracts:
        command += ["--contract", contract]
    environment = {**os.environ, "PYTHONPATH": str(source), "NO_COLOR": "1", "COLUMNS": "1000"}
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, timeout=50, check=False)


def plant(folder: Path, texts: Iterable[tuple[str, str]]) -> Path:
    """Copy the source into a folder, and write more files into the copy."""
    shutil.copytree(ROOT / "src" / "pliant", folder / "pliant", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in texts:
        path = folder / "pliant" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    return folder


def test_the_import_contracts_hold() -> None:
    done = lint(ROOT / "src")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of a copy with all violations in it that are imports, by the name of the contract."""
    files = [(_numbered(number), line) for number, (_, _, line) in enumerate(TOGETHER)]
    done = lint(plant(tmp_path_factory.mktemp("source"), [*files, *COMPANIONS.values()]))
    assert done.returncode == 1, done.stdout + done.stderr
    _, *parts = re.split(r"^(.+)\n-+\n", done.stdout.partition("Broken contracts")[2], flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _numbered(number: int) -> str:
    return TOGETHER[number][1].replace("/planted.py", f"/planted_{number}.py")


@pytest.mark.parametrize("number", range(len(TOGETHER)), ids=["-".join(one) for one in TOGETHER])
def test_a_planted_import_is_caught(complaints: dict[str, str], number: int) -> None:
    (name,) = (contract["name"] for contract in contracts() if contract["id"] == TOGETHER[number][0])
    module = ".".join(("pliant", *Path(_numbered(number)).with_suffix("").parts))

    assert f"{module} -> " in complaints[name], complaints[name]


@pytest.mark.parametrize(("contract", "file", "line"), ALONE)
def test_a_planted_file_is_caught(tmp_path: Path, contract: str, file: str, line: str) -> None:
    done = lint(plant(tmp_path, [(file, line), COMPANIONS.get(line, (file, line))]), contract)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 kept, 1 broken" in done.stdout, done.stdout + done.stderr


def test_every_contract_has_a_planted_violation() -> None:
    assert {contract["id"] for contract in contracts()} == {contract for contract, _, _ in PLANTED}
