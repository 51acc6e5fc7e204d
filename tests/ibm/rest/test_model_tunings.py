"""Tunings of models as IBM's own client asks for them, over the simulator's cluster and the real adviser."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_wmla.wmla_api_v1 import AlgoDef, DeepLearningImpactV1, HpoHyperParameter, HpoTaskDetail, ResDef
from tests.ibm.rest.conftest import DEEP_LEARNING
from tests.ibm.rest.test_hypersearch import Tuning, tuned
from tests.server.conftest import packed
from tests.server.played import Played

from pliant.core.search import Halving

LR = {"name": "learningrate", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.001, "maxDbVal": 0.1}
SOLVER = {"name": "solvertype", "type": "Discrete", "dataType": "STR", "discreateStrVal": ["SGD", "adam (PT)"]}
MOMENTUM = {"name": "momentum", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.1, "maxDbVal": 0.9}
ALGO = {"algorithm": "Random", "maxJobNum": 2, "objectiveMetric": "loss", "objective": "minimize"}
RES = {"framework": "PyTorch", "maxiteration": "100", "batchsize": 16}
SEED = [{"name": "RandomSeed", "value": "5"}]


@pytest.fixture
def tuning(played: Played, client: DeepLearningImpactV1) -> Iterator[Tuning]:
    parameters = [
        {"name": "width", "kind": "int", "default": 8, "maximum": 64},
        {"name": "alpha", "kind": "float", "default": 0.5},
    ]
    template = json.dumps({"name": "digits", "parameters": parameters})
    code = ("c.tar.gz", packed({"main.py": "import pliant.train\n"}))
    made = played.http.post("/templates", files={"template": (None, template), "code": code})
    assert made.status_code == 201, made.text
    hyper = {"epoch": 3, "momentum": 0.5, "learningrate": 0.01}
    client.add_model("m", "digits", accelerator="Elastic", batchsize=32, hyperparameter=hyper)
    with tuned(played, client) as found:
        yield found


def sent(*hyper: Mapping[str, Any], res: Mapping[str, Any] = {}, algo: Mapping[str, Any] = {}) -> dict[str, Any]:
    return {
        "modelName": "m",
        "hpoName": "t",
        "hyperParams": [*hyper],
        "resDef": {**RES, **res},
        "algoDef": {**ALGO, **algo},
    }


def post(tuning: Tuning, body: object, model: str = "m") -> Any:
    return tuning.played.http.post(f"{tuning.played.url}{DEEP_LEARNING}/models/{model}/hypersearch", json=body)


def entered(tuning: Tuning, job_id: str) -> tuple[dict[str, Any], str]:
    files = tuning.played.code(job_id)
    return json.loads(files["parameters.json"]), files["ps.conf"]


def settings_of(tuning: Tuning, model: str) -> dict[str, Any]:
    found: dict[str, Any] = tuning.played.http.get(f"/models/{model}").json()["settings"]
    return found


def train(tuning: Tuning, job_id: str, *losses: float) -> None:
    """Let an experiment report its loss, and finish."""
    tuning.played.measure(job_id, *losses)
    tuning.played.complete(job_id)


def state(tuning: Tuning, name: str = "t") -> dict[str, Any]:
    found: dict[str, Any] = tuning.client.get_model_auto_tuning_status_by_name("m", name).get_result()
    HpoTaskDetail.from_dict(found)
    return found


def test_a_model_is_tuned_by_ibms_client_and_takes_over_what_was_best(tuning: Tuning) -> None:
    client = tuning.client
    hyper = [
        HpoHyperParameter("learningrate", "Range", "double", min_db_val=0.001, max_db_val=0.1),
        HpoHyperParameter("width", "Discrete", "int", discrete_int_val=[16, 32], user_defined=True),
    ]
    res = ResDef("PyTorchOnElastic", "100", 16, worker_num=2, sync_mode="ASYNC")
    algo = AlgoDef("Random", objective="minimize", max_job_num=2, max_paralle_job_num=1)
    made = client.start_model_auto_tuning("m", "m", "t", res, algo, hyper_params=hyper).get_result()
    assert made["uid"] == "t"
    assert [one.split()[0] for one in made["notes"].splitlines()] == ["objectiveMetric", "maxiteration", "syncMode"]
    (job,) = tuning.jobs("t", 1)
    assert (job.spec.script, job.spec.max_tasks, job.spec.fixed) == ("main.py", 2, False)
    assert job.spec.trial is not None
    values = job.spec.trial.values
    assert set(values) == {"learning_rate", "width", "batch_size"}
    code, conf = entered(tuning, job.id)
    assert code["parameters"] == {"width": values["width"], "alpha": 0.5}
    numbers = code["hyperparameters"]
    assert [numbers[name] for name in ("learning_rate", "batch_size", "epochs", "momentum")] == [
        values["learning_rate"],
        16,
        3,
        0.5,
    ]
    assert f"base_lr={values['learning_rate']}\nbatch_size=16\n" in conf

    running = state(tuning)
    assert (running["state"], running["searchGrid"]["running"], running["creator"]) == ("RUNNING", 1, "admin")
    assert {one["name"] for one in running["searchGrid"]["experiments"][0]["hyperParams"]} == {
        "learningrate",
        "width",
        "batchsize",
    }
    for url in ("create/new", "update"):
        told = tuning.played.http.put(f"{tuning.played.url}{DEEP_LEARNING}/models/m/hypersearch/t/{url}")
        assert (told.status_code, told.text) == (
            400,
            "no experiment of t has come to a result yet; wait until one has",
        )
    train(tuning, job.id, 0.9, 0.5, 0.7)
    (other,) = tuning.jobs("t", 1)
    train(tuning, other.id, 0.7)
    tuning.until(lambda: state(tuning)["state"] == "FINISHED")
    done = state(tuning)
    best = done["searchGrid"]["best"]
    assert (best["metricVal"], best["metrics"][0]["min"]) == (0.5, 0.5)
    assert done["searchGrid"]["progress"] == "2/2"
    assert done["input"]["resDef"] == res.to_dict()

    new = client.create_model_using_tuning_result("m", "t", "better").get_result()
    kept = settings_of(tuning, "better")
    assert (new["name"], new["batchsize"], new["hyperparameter"]["epoch"]) == ("better", 16, 3)
    assert kept["hyperparameters"]["learning_rate"] == values["learning_rate"]
    assert kept["parameters"] == {"width": values["width"], "alpha": 0.5}
    assert settings_of(tuning, "m")["hyperparameters"]["learning_rate"] == 0.01
    client.update_model_using_tuning_result("m", "t")
    assert settings_of(tuning, "m") == kept
    with pytest.raises(ApiException, match="newmodelname: '-' cannot be taken"):
        client.create_model_using_tuning_result("m", "t", "-")


def test_a_tuning_without_a_result_says_that_there_will_be_none(tuning: Tuning) -> None:
    assert post(tuning, sent(LR, algo={"maxJobNum": 1})).status_code == 200
    (job,) = tuning.jobs("t", 1)
    tuning.played.complete(job.id)
    tuning.until(lambda: state(tuning)["state"] == "FAILED")

    with pytest.raises(ApiException, match=r"no experiment of t came to a result: .*; mend that, and tune again"):
        tuning.client.update_model_using_tuning_result("m", "t")


def test_a_tuning_is_listed_stopped_restarted_and_deleted(tuning: Tuning) -> None:
    client = tuning.client
    assert client.get_model_auto_tuning_status("m").get_result() == []
    assert post(tuning, sent(LR)).status_code == 200
    (job,) = tuning.jobs("t", 1)
    assert client.stop_model_auto_tuning("m", "t").get_result()["state"] == "STOPPED"
    tuning.until(lambda: tuning.played.job(job.id).num_slots == 0)
    with pytest.raises(ApiException, match="t is already stopped"):
        client.stop_model_auto_tuning("m", "t")
    assert client.restart_model_auto_tuning("m", "t").get_result()["state"] != "STOPPED"
    tuning.jobs("t", 1)
    client.stop_model_auto_tuning_force("m", "t")
    (listed,) = client.get_model_auto_tuning_status("m").get_result()
    assert (listed["input"]["hpoName"], listed["input"]["hyperParams"], listed["state"]) == ("t", [LR], "STOPPED")
    assert [one["hpoName"] for one in client.get_all_hpo().get_result()] == ["t"]

    client.add_model("other", "digits", accelerator="Elastic", batchsize=32)
    assert client.get_model_auto_tuning_status("other").get_result() == []
    with pytest.raises(ApiException, match="the model 'other' has no tuning 't'"):
        client.delete_model_auto_tuning("other", "t")
    with tuning.played.client_of("ben") as ben:
        base = f"{tuning.played.url}{DEEP_LEARNING}/models/m/hypersearch"
        answers = [ben.get(base), ben.get(f"{base}/t"), ben.post(base, json=sent(LR)), ben.put(f"{base}/t/update")]
    assert [one.status_code for one in answers] == [404] * 4
    client.delete_model_auto_tuning("m", "t")
    with pytest.raises(ApiException) as error:
        state(tuning)
    assert error.value.status_code == 404


def test_what_an_optimizer_does_not_have_is_neither_chosen_nor_kept(tuning: Tuning) -> None:
    algo = {"maxJobNum": 8, "maxParalleJobNum": 4, "algoParams": SEED}
    made = post(tuning, sent(MOMENTUM, SOLVER, LR, algo=algo))
    assert made.status_code == 200, made.text
    found = {}
    for job in tuning.jobs("t", 4):
        assert job.spec.trial is not None
        numbers = entered(tuning, job.id)[0]["hyperparameters"]
        found[numbers["optimizer"]] = (numbers["momentum"], job.spec.trial.values.get("momentum"))
    assert set(found) == {"SGD", "Adam"}
    assert found["Adam"] == (None, None)
    assert found["SGD"][0] == found["SGD"][1]
    assert 0.1 <= found["SGD"][0] <= 0.9


def test_hyperband_counts_iterations_or_epochs(tuning: Tuning) -> None:
    hyperband = {"algorithm": "Hyperband", "maxJobNum": -1}
    made = post(tuning, sent(LR, algo=hyperband, res={"maxiteration": "81", "miniteration": "9"}))
    assert made.status_code == 200, made.text
    assert "the 3 epochs of the model" in made.json()["notes"]
    settings = tuning.room.book.require("t").search.settings
    assert settings.halving == Halving(resource="step", min=9, max=81, factor=3, brackets=3)
    assert set(settings.parameters) == {"learning_rate", "batch_size"}
    epochs = [{"name": "ResourceName", "value": "epoch"}, {"name": "ResourceValue", "value": "9"}]
    made = post(tuning, sent(LR, algo=hyperband | {"algoParams": epochs}) | {"hpoName": "u"})
    settings = tuning.room.book.require("u").search.settings
    assert settings.halving == Halving(resource="epoch", min=1, max=9, factor=3, brackets=3)
    assert settings.parameters["epochs"].value == 9


def test_experiments_that_were_given_are_those_of_a_model(tuning: Tuning) -> None:
    def experiment(number: int, key: str) -> dict[str, Any]:
        policy = {"name": "lrpolicy", "dataType": "STR", "fixedVal": "step"}
        gamma = {"name": "gamma", "dataType": "DOUBLE", "fixedVal": "0.5"}
        size = {"name": "stepsize", "dataType": "INT", "fixedVal": str(number)}
        return {"id": number, key: [size, policy, gamma]}

    experiments = [experiment(2, "hyperParams"), experiment(3, "fixedHyperParams")]
    made = post(tuning, sent(algo={"algorithm": "ExperimentGridSearch"}) | {"experiments": experiments})
    assert made.status_code == 200, made.text
    (job,) = tuning.jobs("t", 1)
    conf = entered(tuning, job.id)[1]
    assert "lr_policy=step\nlr_decay_rate=0.5\nlr_decay_steps=2\n" in conf
    last = state(tuning)["input"]["experiments"][1]
    assert (last["id"], {one["name"]: one["fixedVal"] for one in last["fixedHyperParams"]}) == (
        3,
        {"lrpolicy": "step", "stepsize": "3", "gamma": "0.5", "batchsize": "16"},
    )


WRONG: Sequence[tuple[Any, Sequence[str]]] = [
    (
        sent({**LR, "name": "learningrat"}, {**LR, "name": "alpha"}, LR, {**LR, "name": "LearningRate"}),
        (
            "hyperParams.0.name: the model has no hyperparameter 'learningrat'; it has learningrate, momentum,",
            "batchsize, width, alpha; is 'learningrate' meant?",
            "hyperParams.1.name: 'alpha' is a hyperparameter and a parameter of the template's",
            "hyperParams.3.name: 'LearningRate' is the same as 'learningrate'",
        ),
    ),
    (
        sent({**LR, "name": "epoch", "minDbVal": 1.5}, {**LR, "maxDbVal": 0.0001}) | {"modelName": "n"},
        (
            "modelName: 'n' is not 'm'",
            "hyperParams.0.dataType: of 'epoch': it is a whole number",
            "hyperParams.1.minDbVal: of 'learningrate': the range is empty",
        ),
    ),
    (
        sent({**LR, "minDbVal": -1, "maxDbVal": 0.5}, {**SOLVER, "discreateStrVal": ["SGD", "Ftrl"]}),
        ("hyperParams.0: -1.0 is not above 0", "hyperParams.1: 'Ftrl' is no optimizer (TensorFlow's"),
    ),
    (
        sent({"name": "width", "type": "Discrete", "dataType": "INT", "discreteIntVal": [8, 65]}),
        ("hyperParams.0: 65 is above 64",),
    ),
    (
        sent({**MOMENTUM, "name": "rho"}, res={"workerNum": 0, "initWeightPath": "none"}),
        ("resDef.workerNum: 0 is not from 1", "resDef.initWeightPath: the model 'm' has no training 'none'"),
    ),
    (sent({**MOMENTUM, "name": "rho"}), ("hyperParams.0: SGD has no such parameter",)),
    (sent(LR, res={"batchsize": 0}), ("resDef.batchsize: 0 is not above 0",)),
    (sent(LR, res={"workerNum": 17}), ("resDef.workerNum: A batch of 16 samples cannot be cut into 17 parts",)),
    (
        sent(LR, algo={"algorithm": "Hyperband"}, res={"maxiteration": ""}),
        ("resDef.maxiteration: it is missing",),
    ),
    (
        sent(LR, algo={"algorithm": "Hyperband", "algoParams": [{"name": "ResourceName", "value": "time"}]}),
        ("algoDef.algoParams.ResourceName: 'time' is not what a model trains for",),
    ),
    ([], ("body: it is no object; send one with resDef, algoDef and hyperParams",)),
]


def test_what_does_not_fit_the_model_is_told(tuning: Tuning) -> None:
    for body, messages in WRONG:
        told = post(tuning, body)
        assert told.status_code == 400, told.text
        assert [message for message in messages if message.lower() not in told.text.lower()] == [], told.text
    assert tuning.client.get_all_hpo().get_result() == []
