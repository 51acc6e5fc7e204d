"""Algorithms of people's own, installed and used by IBM's own client, in the real process of such an algorithm."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_wmla.wmla_api_v1 import CreationResponse, DeepLearningImpactV1, HpoAlgorithmDesc
from tests.ibm.rest.conftest import DEEP_LEARNING, packed
from tests.ibm.rest.test_hpo_translation import LR, hpo
from tests.ibm.rest.test_hypersearch import Tuning, tuned
from tests.server.played import Played

from pliant.tune.searches.ports import AdviserSource

pytestmark = pytest.mark.slow

HALVES = """
from plugins.core.base_plugin_opt import BasePluginOptimizer
from plugins.core.logger import logger


class PluginOptimizer(BasePluginOptimizer):
    def __init__(self, name, hyper_parameters, **kwargs):
        super().__init__(name, hyper_parameters, **kwargs)
        (self.one,), self.kwargs, self.at = hyper_parameters, kwargs, None

    def search(self, number_samples, last_exp_results=None):
        if self.at is None:
            assert self.one["type"] == "Range" and self.one["dataType"] == "DOUBLE", self.one
            assert self.kwargs == {"part": "0.5", "RandomSeed": "7"}, self.kwargs
            self.at = self.one["maxDbVal"]
        else:
            self.at *= float(self.kwargs["part"])
        logger.info("at %s", self.at)
        return [{self.one["name"]: self.at}]

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = state["at"]
"""
PARAMS = [{"name": "part", "value": "0.5"}, {"name": "RandomSeed", "value": "7"}]


@pytest.fixture
def tuning(played: Played, client: DeepLearningImpactV1) -> Iterator[Tuning]:
    advisers = AdviserSource(open=played._open_adviser, algorithms=played.algorithms.requests)
    with tuned(played, client, advisers) as found:
        yield found


def install(client: DeepLearningImpactV1, data: object, code: bytes | None = None) -> Any:
    text = data if isinstance(data, str) else json.dumps(data)
    return client.install_hpo_algorithm(text, file=io.BytesIO(code) if code is not None else None).get_result()


def test_an_algorithm_is_installed_by_ibms_client_and_chooses_for_a_search(tuning: Tuning) -> None:
    client = tuning.client
    data = {"name": "halves", "condaHome": "/opt/anaconda3", "remoteExec": True, "logLevel": "WARN"}
    made = install(client, repr(data), packed({"halves/optimizer.py": HALVES}))
    assert CreationResponse.from_dict(made).href == f"{DEEP_LEARNING}/hypersearch/algorithm/halves"
    assert [line.split()[0] for line in made["notes"].splitlines()] == ["condaHome", "remoteExec"]
    (listed,) = client.get_all_hpo_algorithm(type="USER_PLUGIN").get_result()
    found = HpoAlgorithmDesc.from_dict(listed)
    assert (found.name, found.type, found.log_level, found.remote_exec) == ("halves", "USER_PLUGIN", "WARNING", False)
    assert client.get_one_algorithm("halves").get_result() == listed
    assert len(client.get_all_hpo_algorithm().get_result()) == 6

    name = tuning.start(hpo("halves", {one["name"]: one["value"] for one in PARAMS}, algo_maxJobNum=2))
    (job,) = tuning.jobs(name, 1)
    assert job.spec.trial is not None
    assert job.spec.trial.values == {"lr": 0.1}
    with pytest.raises(ApiException, match=f"the algorithm 'halves' chooses for {name}"):
        client.delete_one_hpoalgorithm("halves")
    tuning.finish(job, loss=[0.5])
    (other,) = tuning.jobs(name, 1)
    assert other.spec.trial is not None
    assert other.spec.trial.values == {"lr": 0.05}
    tuning.finish(other, loss=[0.25])
    tuning.until(lambda: tuning.show(name)["state"] == "FINISHED")
    shown = tuning.show(name)["algoDef"]
    assert (shown["algorithm"], shown["algoParams"]) == ("halves", PARAMS)

    with pytest.raises(ApiException, match="is 'halves' meant"):
        tuning.start(hpo("halve"))
    with tuning.played.client_of("ben") as ben:
        base = f"{tuning.played.url}{DEEP_LEARNING}/hypersearch/algorithm"
        assert ben.get(f"{base}/halves").status_code == 404
        assert ben.delete(f"{base}/halves").status_code == 404
        assert ben.get(base, params={"type": "USER_PLUGIN"}).json() == []
        told = ben.post(tuning.base, data={"data": json.dumps(hpo("halves"))}, files={"file": b"print()"})
        assert (told.status_code, "there is no algorithm 'halves'" in told.text) == (400, True)
    client.delete_one_hpoalgorithm("halves")
    assert client.get_all_hpo_algorithm(type="USER_PLUGIN").get_result() == []


def test_what_is_wrong_with_an_algorithm_is_told_in_ibms_words(tuning: Tuning) -> None:
    code = packed({"optimizer.py": HALVES})
    wrong: list[tuple[object, bytes | None, list[str]]] = [
        ({"name": "a", "path": "/etc"}, None, ["path: the server does not read '/etc' for anybody; send a tar"]),
        ({"name": "a b", "logLevel": "loud"}, None, ["file: it is missing", "logLevel: 'loud'", "name: 'a b'"]),
        ({"name": "a", "condaEnv": "dlipy3"}, code, ["condaEnv: there is no environment 'dlipy3'"]),
        ({"name": "Tpe"}, code, ["name: 'Tpe' is the name of a sampler"]),
        ({"name": "a"}, packed({"main.py": ""}), ["file: at its top is neither optimizer.py"]),
        ({"name": "a"}, packed({"optimizer.py": "1 / 0"}), ["file: ", "ZeroDivisionError"]),
        ({"name": "a"}, packed({"../optimizer.py": HALVES}), ["file: "]),
        ("[]", code, ["data: it is no object; send one with name"]),
    ]
    for data, sent, messages in wrong:
        with pytest.raises(ApiException) as error:
            install(tuning.client, data, sent)
        assert (error.value.status_code, [one for one in messages if one not in str(error.value.message)]) == (
            400,
            [],
        ), error.value.message
    base = f"{tuning.played.url}{DEEP_LEARNING}/hypersearch/algorithm"
    told = tuning.played.http.post(base, json={"name": "a", "path": "/root"})
    assert (told.status_code, told.text.partition(";")[0]) == (
        400,
        "path: the server does not read '/root' for anybody",
    )
    twice = hpo("mine", algo_algoParams=[PARAMS[0], PARAMS[0]], hyperParams=[LR])
    told = tuning.played.http.post(tuning.base, data={"data": json.dumps(twice)}, files={"file": b"print()"})
    assert "algoDef.algorithm: there is no algorithm 'mine'" in told.text
    assert tuning.client.get_all_hpo_algorithm(type="USER_PLUGIN").get_result() == []
