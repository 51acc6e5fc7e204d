"""IBM's sample searches, begun by IBM's own client over TLS, with real processes."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from ibm_cloud_sdk_core.authenticators import BasicAuthenticator
from ibm_wmla.wmla_api_v1 import AlgoDef, DeepLearningImpactV1, HpoHyperParameter, ResDef
from tests.ibm.rest.conftest import TINY, Site
from tests.ibm.rest.test_hpo_translation import hpo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PLAIN = """
import json, os

with open("config.json") as file:
    config = json.load(file)
assert os.environ["PLIANT_PARAM_LR"] == repr(config["lr"])
loss = [(config["lr"] - 0.05) ** 2 + 1 / step for step in range(1, config.get("epochs", 3) + 1)]
with open(os.path.join(os.environ["RESULT_DIR"], "val_dict_list.json"), "w") as file:
    json.dump([{"step": step, "loss": value, "acc": 1 - value} for step, value in enumerate(loss, start=1)], file)
"""
WITH_EMETRICS = """
import json, os
from emetrics import EMetrics

with open("config.json") as file:
    lr = json.load(file)["lr"]
with EMetrics.open(os.environ["SUBID"]) as metrics:
    for step in range(1, 4):
        metrics.record(EMetrics.TEST_GROUP, step, {"loss": (lr - 0.05) ** 2 + 1 / step})
"""
ELASTIC = TINY.replace("lr=0.1", 'lr=config["lr"]').replace(
    "    torch.manual_seed(1)", '    import json\n    config = json.load(open("config.json"))\n    torch.manual_seed(1)'
)
ELASTIC = ELASTIC.replace("edt.train(args.epochs", 'edt.train(config["epochs"]')
MODEL = TINY.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "mgr.getOptimizer(model)")
MODEL = MODEL.replace("import argparse", "import argparse\nimport pth_parameter_mgr as mgr")
MODEL = MODEL.replace("edt.train(args.epochs, 8, 2)", "edt.train(mgr.getEpoch(), mgr.getTrainBatchSize(), 2)")


def finished(client: DeepLearningImpactV1, sent: dict[str, Any], code: str) -> dict[str, Any]:
    """Begin a search as IBM's samples do, ask as they do until it is over, and return what it came to."""
    name = client.start_hpo(io.BytesIO(code.encode()), json.dumps(sent)).get_result()["uid"]
    deadline = time.monotonic() + 90
    while (found := client.get_one_hpo(name).get_result())["state"] in ("SUBMITTED", "RUNNING"):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    assert found["state"] == "FINISHED", found
    return dict(found)


@pytest.mark.parametrize("code", [PLAIN, WITH_EMETRICS])
def test_a_random_search_reads_what_its_experiments_leave(ibm: DeepLearningImpactV1, code: str) -> None:
    done = finished(ibm, hpo("Random", {"RandomSeed": "5"}, algo_maxJobNum=3, algo_maxParalleJobNum=2), code)
    losses = [(float(one["hyperParams"][0]["fixedVal"]) - 0.05) ** 2 + 1 / 3 for one in done["experiments"]]
    assert [one["metricVal"] for one in done["experiments"]] == losses
    assert done["best"]["metricVal"] == min(losses)
    assert (done["complete"], done["progress"]) == (3, "3/3")


def test_hyperband_of_a_plain_script_trains_all_to_their_end(ibm: DeepLearningImpactV1) -> None:
    params = {"ResourceName": "epochs", "ResourceValue": "4", "eta": "2"}
    done = finished(ibm, hpo("Hyperband", params, algo_maxJobNum=3, algo_maxParalleJobNum=3), PLAIN)
    assert [one["metrics"][0]["latest"] < 0.26 for one in done["experiments"]] == [True] * 3
    assert done["notes"].startswith("Hyperband ends no experiment early")


def test_hyperband_of_an_elastic_script_ends_the_worse_ones_early(site: Site, ibm: DeepLearningImpactV1) -> None:
    params = {"ResourceName": "epochs", "ResourceValue": "4", "eta": "2", "RandomSeed": "3"}
    spec = {"args": "--exec-start edtPyTorch --model-main tiny.py --numWorker 2"}
    sent = hpo("Hyperband", params, algo_maxJobNum=4, algo_maxParalleJobNum=4, modelSpec=spec)
    done = finished(ibm, sent, ELASTIC)
    with site.plain({"Authorization": f"Bearer {site.token}"}) as http:
        trials = http.get(f"/v1/searches/{done['hpoName']}/trials").json()["trials"]
    assert sorted(one["state"] for one in trials) == ["completed", "pruned", "pruned", "pruned"]
    assert [one["state"] for one in done["experiments"]] == ["FINISHED"] * 4
    assert {value["name"]: value["fixedVal"] for value in done["best"]["hyperParams"]}["epochs"] == "4"


def test_a_models_tuning_is_trained_to_its_end_and_so_is_what_was_best(site: Site, tmp_path: Path) -> None:
    client = site.ibm(authenticator=BasicAuthenticator("admin", site.token))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "elastic-main.py").write_text(MODEL)
    tmp_path.chmod(0o755)
    client.add_model_template("tiny", str(tmp_path / "code"), "PyTorch")
    client.add_model("first", "tiny", accelerator="Elastic", batchsize=16, hyperparameter={"epoch": 2})
    rate = HpoHyperParameter("learningrate", "Range", "DOUBLE", min_db_val=-3, max_db_val=0, power="10")
    resources = ResDef("PyTorchOnElastic", "100", 16, worker_num=2)
    algorithm = AlgoDef("Random", objective="minimize", max_job_num=3, max_paralle_job_num=2)
    client.start_model_auto_tuning("first", "first", "rates", resources, algorithm, hyper_params=[rate])

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = client.get_model_auto_tuning_status_by_name("first", "rates").get_result()
        return found

    deadline = time.monotonic() + 90
    while (done := shown())["state"] in ("SUBMITTED", "RUNNING"):
        assert time.monotonic() < deadline, done
        time.sleep(0.1)
    tried, best = done["searchGrid"]["experiments"], done["searchGrid"]["best"]
    assert (done["state"], done["searchGrid"]["progress"]) == ("FINISHED", "3/3")
    assert best["metricVal"] == min(one["metricVal"] for one in tried)
    assert [one["metrics"][0]["min"] for one in tried] == [one["metricVal"] for one in tried]

    client.create_model_using_tuning_result("first", "rates", "better")
    client.start_model_training("better", "whole", "PyTorchOnElastic", 1)
    with site.plain({"Authorization": f"Bearer {site.token}"}) as http:
        job_id = http.get("/v1/models/better/trainings/whole").json()["job_id"]
        while not (job := http.get(f"/v1/jobs/{job_id}").json()["job"])["ended_at"]:
            assert time.monotonic() < deadline, job
            time.sleep(0.1)
    conf = (site.pool.home / "jobs" / job_id / "code" / "ps.conf").read_text().splitlines()
    (chosen,) = [one["fixedVal"] for one in best["hyperParams"] if one["name"] == "learningrate"]
    assert (job["state"], f"base_lr={chosen}" in conf, "batch_size=16" in conf) == ("completed", True, True), job
