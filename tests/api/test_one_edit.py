"""A field that is added to a queue, a job, a model, a data set or a user is one edit of one file; all else follows.

The edit is made in a copy of the sources, and a program looks at every place where the field has to turn up.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
FIELD = '''    patience_s: Annotated[float, Input(Ge(0), Le(900))] = 30.0
    """Seconds before somebody looks at it. They come by bicycle."""
'''
IMPORTS = """from typing import Annotated
from annotated_types import Ge, Le
from pliant.core.input import Input
"""
EDITS = {
    "core/queue.py": ["    open: bool = True\n"],
    "core/job.py": ["    audit: bool = False\n"],
    "core/model.py": ['    description: Text = ""\n    parameters: ', "    engine: Engine | None = None\n"],
    "core/dataset.py": ["    shared_with: SharedWith = ()\n"],
    "core/environment.py": ["    shared_with: SharedWith = ()\n"],
    "core/people.py": ["    role: Role\n"],
}
"""The files with nouns, and the fields that the new ones are put before."""
PROGRAM = """
import contextlib, io, json, os, sys
from pathlib import Path
import httpx
from tests.server.conftest import TOKEN, Served
from pliant.catalog.models.model import Model, Template
from pliant.catalog.models.training import Training
from pliant.cli.app import main
from pliant.core.dataset import Dataset
from pliant.core.environment import Environment
from pliant.people.user import User

home = Path(sys.argv[1])
served = Served(home)
os.environ |= {"PLIANT_URL": f"http://{served.address}", "PLIANT_TOKEN": TOKEN, "COLUMNS": "200", "NO_COLOR": "1"}

def run(*args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        main(args)
    return out.getvalue()

def kept(kind, name):
    return served.store.registry.get(kind, name).noun

(home / "data/flowers").mkdir()
script = home / "train.py"
script.write_text("import pliant.train\\n")
folder = home / "code"
folder.mkdir()
(folder / "main.py").write_text("print()\\n")
document = httpx.get(f"http://{served.address}/openapi.json", timeout=60).json()
schemas = document["components"]["schemas"]

def part(path, media_type, *names):
    schema = document["paths"][path]["post"]["requestBody"]["content"][media_type]["schema"]
    for name in names:
        schema = schema["properties"][name]
    return schema

print(json.dumps({
    "schemas": {name: schemas[name]["properties"].get("patience_s") for name in
                ("QueueRequest", "QueuePatch", "Queue", "JobSpec", "JobPatch", "DatasetRequest", "DatasetPatch",
                 "Dataset", "EnvironmentRequest", "EnvironmentView", "UserRequest", "UserPatch", "UserView",
                 "TemplateView", "ModelRequest", "ModelPatch", "ModelSettings")}
    | {"TemplateRequest": part("/v1/templates", "multipart/form-data", "template", "patience_s"),
       "TrainingRequest": part("/v1/models/{name}/trainings", "application/json", "patience_s")},
    "help": {verb: run(*verb.split(), "--help") for verb in
             ("queues add", "queues set", "submit", "data add", "env add", "users add", "users set",
              "templates add", "models add", "models set", "train")},
    "usual queue": json.loads(run("queues", "add", "usual", "--json")),
    "made queue": json.loads(run("queues", "add", "calm", "--patience-s", "60", "--json")),
    "changed queue": json.loads(run("queues", "set", "calm", "--patience-s", "90", "--json")),
    "refused queue": run("queues", "set", "calm", "--patience-s", "901"),
    "listed queues": json.loads(run("queues", "--json")),
    "kept queue": served.control.queues.queue("calm").noun.patience_s,
    "usual job": json.loads(run("submit", str(script), "--json")),
    "made job": json.loads(run("submit", str(script), "--patience-s", "12.5", "--json")),
    "refused job": run("submit", str(script), "--patience-s", "-1"),
    "shown job": json.loads(run("show", "2", "--json")),
    "kept job": served.store.job("job-2").spec.patience_s,
    "made data set": json.loads(run("data", "add", "--root", "flowers", "--patience-s", "60", "--no-wait", "--json")),
    "refused data set": run("data", "add", "--root", "flowers", "--patience-s", "901"),
    "changed data set": served.http.patch("/datasets/flowers", json={"patience_s": 90}).json(),
    "shown data set": json.loads(run("data", "show", "flowers", "--json")),
    "kept data set": kept(Dataset, "flowers").patience_s,
    "made environment": json.loads(run("env", "add", "own", "--venv", sys.prefix, "--patience-s", "60", "--json")),
    "refused environment": run("env", "add", "other", "--venv", sys.prefix, "--patience-s", "901"),
    "shown environment": json.loads(run("env", "show", "own", "--json")),
    "kept environment": kept(Environment, "own").patience_s,
    "usual user": json.loads(run("users", "add", "ann", "--json"))["user"],
    "made user": json.loads(run("users", "add", "bob", "--patience-s", "60", "--json"))["user"],
    "changed user": json.loads(run("users", "set", "bob", "--patience-s", "90", "--json")),
    "refused user": run("users", "set", "bob", "--patience-s", "901"),
    "kept user": kept(User, "bob").patience_s,
    "usual template": json.loads(run("templates", "add", str(folder), "--name", "usual", "--json")),
    "made template": json.loads(run("templates", "add", str(folder), "--name", "calm", "--patience-s", "60", "--json")),
    "kept template": kept(Template, "calm").patience_s,
    "changed template": json.loads(
        run("templates", "add", str(folder), "--name", "calm", "--patience-s", "90", "--replace", "--json")),
    "refused template": run("templates", "add", str(folder), "--name", "hasty", "--patience-s", "901"),
    "usual model": json.loads(run("models", "add", "usual", "--template", "usual", "--json")),
    "made model": json.loads(run("models", "add", "calm", "--template", "calm", "--patience-s", "60", "--json")),
    "changed model": json.loads(run("models", "set", "calm", "--patience-s", "90", "--json")),
    "refused model": run("models", "set", "calm", "--patience-s", "901"),
    "kept model": kept(Model, "calm").patience_s,
    "training of it": json.loads(run("train", "calm", "--name", "usual", "--json")),
    "another training": json.loads(run("train", "calm", "--name", "other", "--patience-s", "12.5", "--json")),
    "kept training": kept(Training, "calm/other").ran.patience_s,
}))
served.close()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the program finds in sources with the edit."""
    folder = tmp_path_factory.mktemp("edited")
    shutil.copytree(ROOT / "src/pliant", folder / "src/pliant")  # with the bytecode of what is not edited
    for name, places in EDITS.items():
        file = folder / "src/pliant" / name
        source = file.read_text()
        for before in places:
            assert source.count(before) == 1
            source = source.replace(before, FIELD + before)
        begin = source.index("from ")
        file.write_text(source[:begin] + IMPORTS + source[begin:])
    (folder / "home").mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLIANT_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "home")],
        env={**env, "PYTHONPATH": f"{folder / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_openapi_document_says_its_rules_where_it_is_given_and_its_default(found: dict[str, Any]) -> None:
    schemas = found["schemas"]

    number = {"type": "number", "minimum": 0.0, "maximum": 900.0}
    described = {"description": "Seconds before somebody looks at it. They come by bicycle.", "title": "Patience S"}
    for name in ("QueueRequest", "DatasetRequest", "EnvironmentRequest", "UserRequest"):
        assert schemas[name] == {**number, **described, "default": 30.0}
    for name in ("QueuePatch", "DatasetPatch", "UserPatch"):
        assert schemas[name] == {"anyOf": [number, {"type": "null"}], "title": "Patience S"}
    for name in ("Queue", "JobSpec", "Dataset", "EnvironmentView", "UserView"):
        assert schemas[name] == {"type": "number", "title": "Patience S", "default": 30.0}
    assert schemas["JobPatch"] is None, "what was submitted stays as it is"
    assert schemas["TemplateRequest"] == schemas["ModelRequest"] == schemas["QueueRequest"]
    assert schemas["ModelPatch"] == schemas["TrainingRequest"] == schemas["QueuePatch"]
    assert schemas["TemplateView"] == schemas["ModelSettings"] == {"type": "number", "title": "Patience S"}


def test_the_commands_have_an_option_for_it(found: dict[str, Any]) -> None:
    lines = {
        verb: [line for line in page.splitlines() if "--patience-s" in line] for verb, page in found["help"].items()
    }

    assert {verb: [line.split() for line in found] for verb, found in lines.items() if verb != "submit"} == {
        verb: [["--patience-s", "N", "Seconds", "before", "somebody", "looks", "at", "it"]]
        for verb in lines
        if verb != "submit"
    }
    assert [line.split()[-2:] for line in lines["submit"]] == [["[default:", "30.0]"]]


def test_a_queue_is_made_changed_shown_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["usual queue"]["queue"]["patience_s"] == 30.0
    assert found["made queue"]["queue"]["patience_s"] == 60.0
    assert found["changed queue"]["queue"]["patience_s"] == 90.0
    assert {view["queue"]["name"]: view["queue"]["patience_s"] for view in found["listed queues"]["queues"]} == {
        "calm": 90.0,
        "default": 30.0,
        "usual": 30.0,
    }
    assert found["kept queue"] == 90.0
    assert "give 900 or less" in found["refused queue"]


def test_a_training_is_submitted_shown_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["usual job"]["spec"]["patience_s"] == 30.0
    assert found["made job"]["spec"]["patience_s"] == 12.5
    assert found["shown job"]["job"]["spec"]["patience_s"] == 12.5
    assert found["kept job"] == 12.5
    assert "give 0 or more" in found["refused job"]


def test_a_data_set_is_added_changed_shown_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["made data set"]["patience_s"] == 60.0
    assert found["changed data set"]["patience_s"] == 90.0
    assert found["shown data set"]["patience_s"] == 90.0
    assert found["kept data set"] == 90.0
    assert "give 900 or less" in found["refused data set"]


def test_an_environment_is_registered_shown_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["made environment"]["patience_s"] == 60.0
    assert found["shown environment"]["patience_s"] == 60.0
    assert found["kept environment"] == 60.0
    assert "give 900 or less" in found["refused environment"]


def test_a_user_is_made_changed_shown_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["usual user"]["patience_s"] == 30.0
    assert found["made user"]["patience_s"] == 60.0
    assert found["changed user"]["patience_s"] == 90.0
    assert found["kept user"] == 90.0
    assert "give 900 or less" in found["refused user"]


def test_a_template_is_made_replaced_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["usual template"]["patience_s"] == 30.0
    assert found["made template"]["patience_s"] == found["kept template"] == 60.0
    assert found["changed template"]["patience_s"] == 90.0
    assert "give 900 or less" in found["refused template"]


def test_a_model_is_made_changed_trained_and_kept_with_it(found: dict[str, Any]) -> None:
    assert found["usual model"]["settings"]["patience_s"] == 30.0
    assert found["made model"]["settings"]["patience_s"] == 60.0
    assert found["changed model"]["settings"]["patience_s"] == found["kept model"] == 90.0
    assert found["training of it"]["settings"]["patience_s"] == 90.0
    assert found["another training"]["settings"]["patience_s"] == found["kept training"] == 12.5
    assert "give 900 or less" in found["refused model"]
