"""Templates and models in IBM's words, over the simulator's cluster."""

from pathlib import Path
from typing import Any

from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1
from tests.ibm.rest.conftest import DEEP_LEARNING
from tests.server.played import Played

from pliant.core.job_filter import EVERY_JOB


def scripts(played: Played) -> list[str]:
    """Return what the jobs of all trainings run, in the order of their submission."""
    return [job.spec.script for job in reversed(played.control.queries.page(EVERY_JOB, None, 100).jobs)]


def test_the_main_file_of_a_template_depends_on_the_engine(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text("print('one')\n")
    (tmp_path / "elastic-main.py").write_text("print('many')\n")
    client.add_model_template("digits", str(tmp_path), "PyTorch")
    for accelerator in ("Single", "Elastic", "Native"):
        made = client.add_model(accelerator, "digits", accelerator=accelerator, batchsize=8).get_result()
        assert made["tfmainpath"] == ("elastic-main.py" if accelerator == "Elastic" else "main.py")
        client.start_model_training(accelerator, "first", "PyTorch", 1)
    assert scripts(played) == ["main.py", "elastic-main.py", "main.py"]
    assert client.get_model_by_name("Elastic").get_result()["tfmainContent"] == "print('many')\n"
    client.update_model("Elastic", tfmain_content="print('changed')\n")
    assert client.get_model_by_name("Elastic").get_result()["tfmainContent"] == "print('changed')\n"
    assert client.get_model_template_by_name("digits").get_result()["tfmainContent"] == "print('one')\n"


def test_a_template_without_a_file_for_one_worker_is_elastic(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path
) -> None:
    (tmp_path / "elastic-main.py").write_text("print('many')\n")
    (tmp_path / "other.py").write_text("print('other')\n")
    made = client.add_model_template("digits", str(tmp_path), "PyTorch").get_result()
    assert (made["tfmainpath"], made["accelerators"]) == ("elastic-main.py", ["elastic"])
    assert client.add_model("m", "digits", batchsize=8).get_result()["accelerator"] == "Elastic"
    client.update_model_template("digits", tfmainpath="other.py")
    assert client.get_model_template_by_name("digits").get_result()["tfmainContent"] == "print('other')\n"


def test_a_template_does_not_run_a_notebook(played: Played, client: DeepLearningImpactV1, tmp_path: Path) -> None:
    (tmp_path / "day.ipynb").write_text('{"cells": []}')
    body = {"name": "day", "path": str(tmp_path), "framework": "PyTorch", "tfmainpath": "day.ipynb"}
    told = played.http.post(f"{played.url}{DEEP_LEARNING}/modeltemplates", json=body)
    assert (told.status_code, told.text.partition(";")[0]) == (400, "tfmainpath: 'day.ipynb' is a notebook")


def test_what_is_wrong_is_told_by_ibms_names_of_the_fields(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text("print('one')\n")
    client.add_model_template("digits", str(tmp_path), "PyTorch")
    client.add_model("m", "digits", accelerator="Elastic", batchsize=8)
    (played.home / "data" / "pets").mkdir(parents=True)
    pets = {"name": "pets", "datasourcetype": "IMAGEFORCLASSIFICATION"}
    hyper = {"stepsize": 0, "epoch": 0}
    model = {"templatename": "digits", "accelerator": "Elastic"}
    wrong: list[tuple[str, dict[str, Any], set[str]]] = [
        (
            "datasets",
            pets | {"imagedetail": {"trainimagepath": "pets", "width": -1, "valpercentage": 200}},
            {"imagedetail.width", "imagedetail.valpercentage"},
        ),
        ("datasets", pets | {"trainpath": "nowhere"}, {"trainpath"}),
        (
            "models",
            model | {"name": "n", "batchsize": 0, "hyperparameter": hyper},
            {"batchsize", "hyperparameter.stepsize", "hyperparameter.epoch"},
        ),
        ("models", model | {"name": "n", "hyperparameter": {"learningrate": -1}}, {"hyperparameter.learningrate"}),
        ("models", {"name": "n", "templatename": "none"}, {"templatename"}),
        ("models/m/trainings", {"trainName": "a/b", "clusterSize": 0, "gpuRatio": 0}, {"trainName", "clusterSize"}),
        ("models/m/trainings", {"clusterSize": 9}, {"clusterSize"}),
    ]
    for path, body, fields in wrong:
        told = played.http.post(f"{played.url}{DEEP_LEARNING}/{path}", json=body)
        assert told.status_code == 400, told.text
        assert [field for field in fields if f"{field}: " not in told.text] == [], told.text


def test_a_body_that_is_not_said_to_be_json_is_told_the_header(played: Played, client: DeepLearningImpactV1) -> None:
    told = played.http.post(f"{played.url}{DEEP_LEARNING}/models", content=b'{"name": "m"}')
    assert told.status_code == 400
    assert told.text == "it is not sent as JSON; send an object, with the header Content-Type: application/json"
