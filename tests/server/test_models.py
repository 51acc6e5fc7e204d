"""Templates, models and trainings over a real server."""

import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from pliant.catalog.models.training import Training
from pliant.core.access import EVERYBODY, Role
from pliant.core.dataset import Content, Dataset, DatasetState, Source
from pliant.server.model_jobs import make_models

Served = Any

CODE = {"main.py": "print('one')\n", "network.py": "WIDTH = 1\n"}
WIDTH = {"name": "width", "kind": "int", "default": 8, "minimum": 1, "maximum": 64}


def packed(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def unpacked(archive: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        return {name: file.read().decode() for name, file in found.items() if file is not None}


def torch_file(text: bytes = b"weights") -> bytes:
    """Return what looks like a file of torch's from outside."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model/data.pkl"), text)  # ZipInfo's own date: the same bytes at any time
    return out.getvalue()


def add_template(
    http: httpx.Client, name: str = "images", files: Mapping[str, str] | bytes = CODE, **more: Any
) -> httpx.Response:
    body = json.dumps({"name": name, **more})
    code = files if isinstance(files, bytes) else packed(files)
    return http.post("/templates", files={"template": (None, body), "code": ("c.tar.gz", code)})


def add_model(http: httpx.Client, name: str = "digits", template: str = "images", **more: Any) -> httpx.Response:
    return http.post("/models", json={"name": name, "template": template, **more})


def train(http: httpx.Client, model: str = "digits", **asked: Any) -> httpx.Response:
    return http.post(f"/models/{model}/trainings", json=asked)


def problems(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 422, response.text
    return {problem["field"]: problem["message"] for problem in response.json()["problems"]}


def end_training(server: Served, job_id: str, content: bytes = b"") -> Path:
    """End a job as if it had saved a model."""
    weights = Path(str(server.control.settings.folders(job_id).weights))
    weights.write_bytes(content or torch_file())
    server.http.post(f"/jobs/{job_id}/stop")
    server.tick()
    server.tick(2)
    assert server.http.get(f"/jobs/{job_id}").json()["job"]["state"] == "stopped"
    return weights


def keep_dataset(server: Served, name: str = "flowers", owner: str = "admin", **more: Any) -> Path:
    folder = Path(server.home) / "flowers"
    folder.mkdir(exist_ok=True)
    noun = Dataset(name=name, owner=owner, kind="any", source=Source(path="flowers"), folder=str(folder), **more)
    server.store.registry.add(noun, at=1.0)
    return folder


# Templates


def test_a_template_is_added_shown_replaced_and_removed(server: Served) -> None:
    http = server.http
    made = add_template(http, description="small", parameters=[WIDTH], engines=["single", "elastic"])
    assert made.status_code == 201, made.text
    assert (made.headers["etag"], made.json()["owner"], made.json()["num_files"]) == ('"1"', "admin", 2)
    assert made.json()["engines"] == ["single", "elastic"]
    assert http.get("/templates/images").json() == made.json()
    assert http.get("/templates").json() == {"templates": [made.json()], "next": None}
    assert unpacked(http.get("/templates/images/files").content) == CODE
    assert [path.name for path in (server.home / "templates").iterdir()] == ["images-1"]

    body = json.dumps({"name": "images", "description": "larger"})
    described = http.put("/templates/images", files={"template": (None, body)}, headers={"If-Match": '"1"'})
    assert (described.status_code, described.headers["etag"], described.json()["parameters"]) == (200, '"2"', [])
    assert described.json()["checksum"] == made.json()["checksum"]
    stale = http.put("/templates/images", files={"template": (None, body)}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    code = ("c.tar.gz", packed({"main.py": "print('two')\n"}))
    replaced = http.put("/templates/images", files={"template": (None, body), "code": code})
    assert (replaced.headers["etag"], replaced.json()["num_files"]) == ('"3"', 1)
    assert replaced.json()["checksum"] != made.json()["checksum"]
    assert [path.name for path in (server.home / "templates").iterdir()] == ["images-3"]
    assert unpacked(http.get("/templates/images/files").content) == {"main.py": "print('two')\n"}

    assert http.delete("/templates/images", headers={"If-Match": '"2"'}).status_code == 412
    assert http.delete("/templates/images").status_code == 204
    assert http.get("/templates/images").status_code == 404
    assert list((server.home / "templates").iterdir()) == []
    assert list((server.home / "uploads").iterdir()) == []


def test_a_script_of_ibms_has_its_batch_per_worker(server: Served) -> None:
    http = server.http
    numbers = {"batch_size": 2, "epochs": 1}
    for name, option in (("asks", "--numWorker"), ("knows", "--other")):
        files = CODE | {"elastic-main.py": f"parser.add_argument('{option}', type=int, default=100)\n"}
        assert add_template(http, name, files).is_success
        made = add_model(http, name, name, engine="elastic", max_workers=3, hyperparameters=numbers)
        assert made.status_code == 201, made.text
    specs = [
        http.get(f"/jobs/{train(http, name).json()['job_id']}").json()["job"]["spec"] for name in ("asks", "knows")
    ]
    assert [spec["args"] for spec in specs] == [["--numWorker", "3"], []]
    assert [(spec["virtual_workers"], spec["max_tasks"]) for spec in specs] == [(3, 3), (3, 3)]


def test_the_engine_elastic_has_a_file_of_its_own(server: Served) -> None:
    http = server.http

    def scripts() -> list[str]:
        jobs = [train(http, engine=engine).json()["job_id"] for engine in ("single", "elastic", "distributed")]
        return [http.get(f"/jobs/{job}").json()["job"]["spec"]["script"] for job in jobs]

    def replace_template(files: Mapping[str, str] | None, **said: str) -> None:
        parts: dict[str, Any] = {"template": (None, json.dumps({"name": "images", **said}))}
        if files is not None:
            parts["code"] = ("c.tar.gz", packed(files))
        assert http.put("/templates/images", files=parts).is_success
        assert http.patch("/models/digits", json={"newest_template": True}).is_success

    both = CODE | {"elastic-main.py": "print('more')\n"}
    assert add_template(http, files=both).json()["elastic_script"] == "elastic-main.py"
    assert add_model(http).is_success
    assert scripts() == ["main.py", "elastic-main.py", "main.py"]
    replace_template(None, elastic_file="network.py")
    assert scripts() == ["main.py", "network.py", "main.py"]
    replace_template(CODE)
    assert scripts() == ["main.py", "main.py", "main.py"]
    only = add_template(http, "only", {"elastic-main.py": "print()\n"}, engines=["elastic"])
    assert only.status_code == 201, only.text
    wrong = add_template(http, "wrong", {"elastic-main.py": "def", "x.py": ""}, elastic_file="y.py")
    assert set(problems(wrong)) == {"main_file", "elastic_file"}
    assert "does not parse" in problems(add_template(http, "wrong", CODE | {"elastic-main.py": "def"}))["elastic_file"]


def test_a_template_that_cannot_be_is_refused_and_nothing_is_kept(server: Served) -> None:
    http = server.http
    declared = {"name": "x", "kind": "int", "default": "many"}
    found = problems(add_template(http, parameters=[declared, declared], shared_with=["nobody"]))
    assert {"parameters.0", "parameters.1", "shared_with.0"} == set(found)
    assert "main.py" in problems(add_template(http, files={"train.py": ""}))["main_file"]
    assert "does not parse" in problems(add_template(http, files={"main.py": "def"}))["main_file"]
    assert "outside" in problems(add_template(http, files={"main.py": "", "../x": ""}))["code"]
    assert "code" in problems(add_template(http, files=b"no archive"))
    assert set(problems(add_template(http, name="../up"))) == {"name"}
    assert set(problems(http.post("/templates", files={"template": (None, "{}")}))) == {"code"}
    assert add_template(http).status_code == 201
    taken = add_template(http, files={"main.py": "1"})
    assert taken.status_code == 409
    assert unpacked(http.get("/templates/images/files").content) == CODE
    assert [path.name for path in (server.home / "templates").iterdir()] == ["images-1"]


def test_a_template_in_use_is_not_removed_and_the_models_are_named(server: Served) -> None:
    add_template(server.http, shared_with=[EVERYBODY])
    with server.client_of("ada") as ada, server.client_of("bob") as bob:
        add_template(ada, name="own", shared_with=["bob"])
        assert add_model(ada, name="mine", template="own").status_code == 201
        assert add_model(bob, name="hidden", template="own").status_code == 201
        refused = ada.delete("/templates/own")
        assert refused.status_code == 409
        assert "used by the model mine and 1 other model" in refused.json()["detail"]
        assert server.http.delete("/templates/own").json()["detail"].count("hidden, mine") == 1
        assert ada.delete("/models/mine").status_code == 204
        assert "used by 1 model of others" in ada.delete("/templates/own").json()["detail"]


# Models


def test_a_model_is_made_changed_and_removed(server: Served) -> None:
    http = server.http
    add_template(http, parameters=[WIDTH], engines=["elastic", "single"])
    folder = keep_dataset(server, state=DatasetState.READY, content=Content(checksum="abc"))
    made = add_model(
        http,
        dataset="flowers",
        max_workers=4,
        hyperparameters={"optimizer": "adam", "learning_rate": 0.5, "beta1": 0.8, "beta2": 0.9},
        parameters={"width": 16},
    )
    assert made.status_code == 201, made.text
    settings = made.json()["settings"]
    assert (settings["template"], settings["template_revision"], settings["engine"]) == ("images", 1, "elastic")
    assert (settings["hyperparameters"]["optimizer"], settings["hyperparameters"]["batch_size"]) == ("Adam", 32)
    assert http.get("/models/digits").json() == made.json()
    assert http.get("/models").json() == {"models": [made.json()], "next": None}

    patch = {
        "hyperparameters": {"epochs": 3, "learning_rate": None},
        "parameters": {"width": None},
        "data_dir": str(folder),
        "engine": "single",
    }
    changed = http.patch("/models/digits", json=patch, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    now = changed.json()["settings"]
    assert (now["hyperparameters"]["epochs"], now["hyperparameters"]["learning_rate"]) == (3, 0.01)
    assert (now["parameters"], now["data_dir"], now["dataset"]) == ({"width": 8}, str(folder), None)
    assert (now["engine"], now["max_workers"]) == ("single", 1)
    assert http.patch("/models/digits", json={"priority": 1}, headers={"If-Match": '"1"'}).status_code == 412
    assert http.delete("/models/digits", headers={"If-Match": '"2"'}).status_code == 204
    assert http.get("/models/digits").status_code == 404
    assert http.delete("/templates/images").status_code == 204


def test_what_a_form_of_a_model_is_made_of_comes_from_the_server(server: Served) -> None:
    http = server.http
    assert add_template(http, parameters=[WIDTH], engines=["elastic"]).status_code == 201
    model = add_model(http).json()
    assert (model["template_engines"], [one["name"] for one in model["template_parameters"]]) == (
        ["elastic"],
        ["width"],
    )

    tables = http.get("/hyperparameters").json()
    assert set(model["settings"]["hyperparameters"]) == {number["name"] for number in tables["numbers"]}
    assert {"name": "Rprop", "parameters": []} in tables["optimizers"]
    assert {"name": "step", "needs": ["lr_gamma", "lr_step_size"], "takes": []} in tables["lr_policies"]
    kinds = {number["name"]: (number["kind"], number["default"]) for number in tables["numbers"]}
    assert kinds["lr_values"] == ("floats", None)
    assert kinds["learning_rate"] == ("float", 0.01)


def test_everything_that_does_not_fit_a_model_is_told_at_once(server: Served) -> None:
    add_template(server.http, parameters=[WIDTH], engines=["single"])
    wrong = add_model(
        server.http,
        dataset="nowhere",
        max_workers=2,
        hyperparameters={"optimizer": "Ftrl", "lr_policy": "step"},
        parameters={"width": 65, "depth": 1},
        shared_with=["nobody"],
    )
    assert set(problems(wrong)) == {
        "dataset",
        "max_workers",
        "hyperparameters.optimizer",
        "hyperparameters.lr_gamma",
        "hyperparameters.lr_step_size",
        "parameters.width",
        "parameters.depth",
        "shared_with.0",
    }
    assert set(problems(add_model(server.http, engine="elastic"))) == {"engine"}
    assert set(problems(add_model(server.http, template="none"))) == {"template"}
    assert set(problems(add_model(server.http, hyperparameters={"epoch": 3}))) == {"hyperparameters.epoch"}
    assert set(problems(add_model(server.http, data_dir="relative"))) == {"data_dir"}
    assert server.http.get("/models").json()["models"] == []


def test_a_model_keeps_its_revision_of_the_template_until_it_is_told_to_go_on(server: Served) -> None:
    http = server.http
    add_template(http, parameters=[WIDTH])
    add_model(http)
    body = json.dumps({"name": "images", "main_file": "go.py"})
    code = ("c.tar.gz", packed({"go.py": "print('two')\n"}))
    assert http.put("/templates/images", files={"template": (None, body), "code": code}).status_code == 200
    assert sorted(path.name for path in (server.home / "templates").iterdir()) == ["images-1", "images-2"]
    assert http.get("/models/digits").json()["settings"]["parameters"] == {"width": 8}
    train(http)
    assert server.http.get("/jobs/job-1").json()["job"]["spec"]["script"] == "main.py"
    moved = http.patch("/models/digits", json={"newest_template": True})
    assert (moved.json()["settings"]["template_revision"], moved.json()["settings"]["parameters"]) == (2, {})
    assert [path.name for path in (server.home / "templates").iterdir()] == ["images-2"]
    train(http)
    assert server.http.get("/jobs/job-2").json()["job"]["spec"]["script"] == "go.py"


# Trainings


def test_a_training_is_a_job_with_all_that_was_entered(server: Served) -> None:
    http = server.http
    add_template(http, parameters=[WIDTH])
    keep_dataset(server, state=DatasetState.READY, content=Content(checksum="abc"))
    add_model(http, dataset="flowers", engine="elastic", max_workers=3, slots_per_worker=1, priority=7000)
    made = train(http, hyperparameters={"epochs": 2}, parameters={"width": 4}, max_workers=2)
    assert made.status_code == 201, made.text
    view = made.json()
    assert (view["model"], view["name"], view["job_id"], view["state"]) == ("digits", "training-1", "job-1", "pending")
    assert (view["settings"]["max_workers"], view["settings"]["parameters"]) == (2, {"width": 4})
    assert (view["dataset_checksum"], view["has_weights"], view["weights_from"]) == ("abc", False, None)

    spec = http.get("/jobs/job-1").json()["job"]["spec"]
    assert (spec["name"], spec["script"], spec["dataset"]) == ("digits.training-1", "main.py", "flowers")
    assert (spec["min_tasks"], spec["max_tasks"], spec["priority"], spec["fixed"]) == (1, 2, 7000, False)
    code = Path(str(server.control.settings.folders("job-1").code))
    assert (code / "main.py").read_text() == CODE["main.py"]
    assert "epoch=2\n" in (code / "ps.conf").read_text()
    entered = json.loads((code / "parameters.json").read_text())
    assert (entered["parameters"], entered["hyperparameters"]["epochs"]) == ({"width": 4}, 2)

    (code / "main.py").write_text("the script wrote over itself")
    ran = unpacked(http.get("/models/digits/trainings/training-1/code").content)
    assert ran == {
        **CODE,
        "ps.conf": (code / "ps.conf").read_text(),
        "parameters.json": json.dumps(entered, indent=2, ensure_ascii=False, sort_keys=True) + "\n",
    }
    assert http.get("/models/digits").json()["num_trainings"] == 1
    assert http.get("/models/digits").json()["settings"]["hyperparameters"]["epochs"] == 10


def test_the_job_of_a_training_is_not_run_again_by_itself(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    job_id = train(server.http).json()["job_id"]

    refused = server.http.post(f"/jobs/{job_id}/rerun", json={})
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "job-1 trains a model, which keeps its result; train the model again instead",
    )


def test_the_engine_makes_the_kind_of_job(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    found = []
    for engine, workers in (("single", 1), ("elastic", 12), ("distributed", 3)):
        job_id = train(server.http, engine=engine, max_workers=workers).json()["job_id"]
        spec = server.http.get(f"/jobs/{job_id}").json()["job"]["spec"]
        found.append((spec["min_tasks"], spec["max_tasks"], spec["fixed"], spec["virtual_workers"]))
    assert found == [(1, 1, False, None), (1, 12, False, None), (3, 3, True, 3)]


def test_a_model_says_how_often_its_trainings_log_histograms(server: Served) -> None:
    add_template(server.http)
    add_model(server.http, histograms_every=50)
    found = []
    for changes in ({}, {"histograms_every": 7}, {"histograms_every": None}):
        job_id = train(server.http, **changes).json()["job_id"]
        found.append(server.http.get(f"/jobs/{job_id}").json()["job"]["spec"]["histograms_every"])
    assert found == [50, 7, None]
    assert "logs no histograms" in problems(train(server.http, engine="distributed"))["histograms_every"]
    assert "histograms_every" in problems(train(server.http, histograms_every=0))


def test_a_batch_of_all_workers_is_cut_as_suits_it_and_has_a_sample_for_each(server: Served) -> None:
    add_template(server.http)
    add_model(server.http, engine="elastic", max_workers=2, hyperparameters={"batch_size": 4})
    train(server.http)
    assert server.http.get("/jobs/job-1").json()["job"]["spec"]["virtual_workers"] is None
    small = train(server.http, max_workers=8)
    assert "batch" in problems(small)["max_workers"]


def test_a_training_stays_readable_when_all_around_it_is_gone(server: Served) -> None:
    http = server.http
    add_template(http, parameters=[WIDTH])
    add_model(http, parameters={"width": 32})
    first = train(http, name="first").json()
    running = http.delete("/models/digits")
    assert running.status_code == 409
    assert "being trained (training first)" in running.json()["detail"]
    assert http.delete("/models/digits/trainings/first").status_code == 409
    weights = end_training(server, "job-1")
    assert http.delete("/models/digits").status_code == 204
    assert http.delete("/templates/images").status_code == 204

    view = http.get("/models/digits/trainings/first").json()
    assert (view["settings"], view["code_hash"]) == (first["settings"], first["code_hash"])
    assert (view["state"], view["has_weights"]) == ("stopped", True)
    assert [one["name"] for one in http.get("/models/digits/trainings").json()["trainings"]] == ["first"]
    assert unpacked(http.get("/models/digits/trainings/first/code").content)["main.py"] == CODE["main.py"]
    assert http.get("/models/digits/trainings/first/weights").content == weights.read_bytes()
    assert http.delete("/models/digits/trainings/first").status_code == 204
    assert http.get("/models/digits/trainings").status_code == 404
    assert list((server.home / "trainings").iterdir()) == []
    assert http.get("/jobs/job-1").status_code == 200


def test_a_training_is_stopped_through_its_model(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    train(server.http)
    server.tick()
    stopped = server.http.post("/models/digits/trainings/training-1/stop")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopping")
    server.tick(2)
    again = server.http.post("/models/digits/trainings/training-1/stop")
    assert again.status_code == 409


def test_a_training_starts_from_the_weights_of_another(server: Served) -> None:
    http = server.http
    add_template(http)
    add_model(http)
    add_model(http, name="other")
    train(http, name="first")
    early = train(http, weights={"training": "first"})
    assert "no weights" in problems(early)["weights"]
    source = end_training(server, "job-1")
    then = source.read_bytes()
    second = train(http, weights={"training": "first"}).json()
    third = train(http, model="other", weights={"model": "digits", "training": "first"}).json()
    fourth = train(http, weights={"job": "job-1"}).json()
    assert [one["weights_from"]["source"] for one in (second, third, fourth)] == [
        "digits/first",
        "digits/first",
        "job-1",
    ]
    source.write_bytes(b"changed meanwhile")
    paths = {http.get(f"/jobs/{one['job_id']}").json()["job"]["spec"]["weights"] for one in (second, third, fourth)}
    (path,) = paths
    assert Path(path).read_bytes() == then
    assert set(problems(train(http, weights={"training": "none"}))) == {"weights"}
    assert set(problems(train(http, weights={"job": "job-99"}))) == {"weights"}
    assert set(problems(train(http, weights={"job": "job-1", "training": "first"}))) == {"weights"}


def test_weights_are_uploaded(server: Served) -> None:
    http = server.http
    add_template(http)
    add_model(http)
    sent = {"training": (None, json.dumps({"name": "warm"})), "weights": ("w.pt", torch_file(b"x" * (2 << 20)))}
    made = http.post("/models/digits/trainings", files=sent)
    assert made.status_code == 201, made.text
    assert made.json()["weights_from"]["source"] == "file"
    path = Path(http.get("/jobs/job-1").json()["job"]["spec"]["weights"])
    assert path.read_bytes() == torch_file(b"x" * (2 << 20))
    no_model = {"training": (None, "{}"), "weights": ("w.pt", b"no weights")}
    assert "torch.save" in problems(http.post("/models/digits/trainings", files=no_model))["weights"]
    both = {"training": (None, json.dumps({"weights": {"training": "warm"}})), "weights": ("w.pt", torch_file())}
    assert "give one of the two" in problems(http.post("/models/digits/trainings", files=both))["weights"]
    assert len(list((server.home / "trainings").iterdir())) == 2
    assert list((server.home / "uploads").iterdir()) == []


def test_names_of_trainings_are_taken_once_and_counted_on(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    names = [train(server.http).json()["name"] for _ in range(2)]
    assert names == ["training-1", "training-2"]
    assert train(server.http, name="training-2").status_code == 409
    assert train(server.http, name="training-9").status_code == 201
    assert train(server.http).json()["name"] == "training-10"
    page = server.http.get("/models/digits/trainings", params={"limit": 3}).json()
    rest = server.http.get("/models/digits/trainings", params={"limit": 3, "after": page["next"]}).json()
    listed = [one["name"] for one in (*page["trainings"], *rest["trainings"])]
    assert (listed, rest["next"]) == (sorted([*names, "training-9", "training-10"]), None)


def test_a_training_whose_job_is_refused_leaves_nothing(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    add_model(server.http, name="elsewhere", environment="nowhere")
    refused = train(server.http, model="elsewhere")
    assert set(problems(refused)) == {"environment"}
    assert server.http.get("/models/elsewhere/trainings").json()["trainings"] == []
    assert list((server.home / "trainings").iterdir()) == []
    keep_dataset(server)
    assert server.http.patch("/models/digits", json={"dataset": "flowers"}).status_code == 200
    assert "importing, not ready" in problems(train(server.http))["dataset"]
    assert server.http.get("/jobs").json()["jobs"] == []


def test_what_a_killed_server_left_is_cleaned_at_the_next_start(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    train(server.http, name="whole")
    whole = server.store.registry.get(Training, "digits/whole").noun
    server.store.registry.add(replace(whole, name="digits/half", job_id="", code_hash="0" * 64), at=1.0)
    (server.home / "trainings" / ".new-draft").write_text("half")
    (server.home / "trainings" / ("0" * 64 + ".tar.gz")).write_text("nobody's")
    (server.home / "templates" / ".new-draft").mkdir()
    make_models(
        server.store.registry, server.clock, server.control, server.sharing, server.people.authenticator.has_user
    )
    assert [one["name"] for one in server.http.get("/models/digits/trainings").json()["trainings"]] == ["whole"]
    assert [path.name for path in (server.home / "trainings").iterdir()] == [f"{whole.code_hash}.tar.gz"]
    assert [path.name for path in (server.home / "templates").iterdir()] == ["images-1"]


# Who may what


def test_people_see_their_own_and_what_is_shared_and_change_their_own_only(server: Served) -> None:
    with server.client_of("ada") as ada, server.client_of("bob") as bob:
        add_template(ada)
        assert add_model(ada).status_code == 201
        for path in ("/templates/images", "/templates/images/files", "/models/digits", "/models/digits/trainings"):
            assert bob.get(path).status_code == 404, path
        assert (bob.get("/templates").json()["templates"], bob.get("/models").json()["models"]) == ([], [])
        assert set(problems(add_model(bob, name="his"))) == {"template"}
        assert train(bob).status_code == 404

        assert ada.patch("/models/digits", json={"shared_with": ["bob"]}).status_code == 200
        assert bob.get("/models/digits").status_code == 200
        assert bob.patch("/models/digits", json={"priority": 1}).status_code == 403
        assert bob.delete("/models/digits").status_code == 403
        his = train(bob, name="his")
        assert (his.status_code, his.json()["owner"]) == (201, "bob")
        hers = train(ada, name="hers").json()
        assert server.http.get(f"/jobs/{hers['job_id']}").json()["job"]["owner"] == "ada"
        assert bob.get("/models/digits/trainings/hers").status_code == 200
        assert bob.post("/models/digits/trainings/hers/stop").status_code == 403
        assert bob.delete("/models/digits/trainings/hers").status_code == 403
        assert ada.patch("/models/digits", json={"shared_with": []}).status_code == 200
        assert [one["name"] for one in bob.get("/models/digits/trainings").json()["trainings"]] == ["his"]
        assert bob.get("/models/digits/trainings/hers").status_code == 404
        assert "used by" not in bob.delete("/templates/images").text


def test_weights_of_a_job_that_one_does_not_see_are_not_there(server: Served) -> None:
    with server.client_of("ada") as ada, server.client_of("bob") as bob:
        for who, name in ((ada, "a"), (bob, "b")):
            add_template(who, name=name)
            add_model(who, name=name, template=name)
        train(ada, model="a", name="secret")
        end_training(server, "job-1")
        assert set(problems(train(bob, model="b", weights={"job": "job-1"}))) == {"weights"}
        assert set(problems(train(bob, model="b", weights={"model": "a", "training": "secret"}))) == {"weights"}


def test_who_looks_only_changes_nothing_and_an_operator_does(server: Served) -> None:
    add_template(server.http, shared_with=[EVERYBODY])
    with server.client_of("vic", Role.VIEWER) as viewer, server.client_of("opa", Role.OPERATOR) as operator:
        assert viewer.get("/templates/images").status_code == 200
        assert add_model(viewer).status_code == 403
        assert add_model(operator).status_code == 201
        assert server.http.patch("/models/digits", json={"priority": 10}).status_code == 200
        assert operator.delete("/templates/images").status_code == 409
        assert operator.delete("/models/digits").status_code == 204
        assert operator.delete("/templates/images").status_code == 204


def test_odd_names_and_texts_are_told_and_break_nothing(server: Served) -> None:
    http = server.http
    add_template(http)
    assert http.get("/models/%00").status_code == 422
    assert http.get("/models/%ED%A0%80").status_code == 404
    assert http.get("/templates/..%2Fpliant.db").status_code == 404
    bad = {"name": "digits", "template": "images", "queue": "a\0", "environment": "\0", "description": "\0"}
    assert {"queue", "environment", "description"} <= set(problems(http.post("/models", json=bad)))
    lone = b'{"name": "digits", "template": "images", "description": "\\ud800"}'
    assert http.post("/models", content=lone, headers={"Content-Type": "application/json"}).status_code == 422
    add_model(http)
    assert http.post("/models/digits/trainings", content=b"{").status_code == 422
    assert set(problems(train(http, weights={"job": "job-\0"}))) == {"weights.job"}
    huge = http.post("/models/digits/trainings", content=b" " * (2 << 20))
    assert huge.status_code == 413
    huge_number = {"name": "other", "template": "images", "parameters": {"x": 10**400}}
    assert http.post("/models", json=huge_number).status_code == 422


def test_many_trainings_at_once_have_names_of_their_own(server: Served) -> None:
    add_template(server.http)
    add_model(server.http)
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(train(server.http).json()["name"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [f"training-{i}" for i in range(1, 5)]
    jobs = {one["job_id"] for one in server.http.get("/models/digits/trainings").json()["trainings"]}
    assert len(jobs) == 4


def test_the_description_of_the_routes_has_no_dangling_reference(module_server: Served) -> None:
    page = httpx.get(f"http://{module_server.address}/openapi.json", timeout=30).json()
    schemas = page["components"]["schemas"]
    bodies = [page["paths"][f"/v1/{path}"]["post"]["requestBody"] for path in ("templates", "models/{name}/trainings")]
    assert '"$ref"' not in json.dumps(bodies)
    known = {f"#/components/schemas/{name}" for name in schemas}
    assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(page))) <= known
