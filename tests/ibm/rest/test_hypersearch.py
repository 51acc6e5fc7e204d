"""HPO tasks as IBM's own client and others read them, over the simulator's cluster and the real adviser."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_wmla.wmla_api_v1 import CreationResponse, DeepLearningImpactV1, HpoAlgorithmDesc, HpoTaskState
from tests.ibm.rest.conftest import DEEP_LEARNING, packed
from tests.ibm.rest.test_hpo_translation import LR, hpo
from tests.plain_http import NO_TLS
from tests.server.conftest import packed as packed_code
from tests.server.conftest import wait_for
from tests.server.played import Played

from pliant.core.access import Principal, Role
from pliant.core.job import Job, Metric
from pliant.core.ports import Writes
from pliant.core.search import Halving, SearchState
from pliant.server.search_jobs import SearchRoom, make_searches
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.searches.ports import AdviserSource

ELASTIC = {"modelSpec": {"args": "--exec-start edtPyTorch --model-main a.py --numWorker 2"}}


class Tuning:
    """A server whose searches go on when a test looks, and IBM's client of it."""

    def __init__(
        self,
        played: Played,
        client: DeepLearningImpactV1,
        advisers: AdviserSource | None = None,
    ) -> None:
        self.played, self.client = played, client
        names = iter(range(1, 100))
        self.room: SearchRoom = make_searches(
            played.store.searches,
            played.clock,
            played.control,
            played.people.authenticator.has_user,
            advisers=advisers or AdviserSource(open=OptunaAdviser),
            new_name=lambda: f"search-{next(names)}",
        )
        state = played.app.state
        state.context = replace(state.context, searches=self.room.requests)
        self.base = f"{played.url}{DEEP_LEARNING}/hypersearch"

    def start(self, sent: Mapping[str, Any], code: bytes = b"print()\n") -> str:
        """Begin a search; return its name."""
        made = CreationResponse.from_dict(self.client.start_hpo(io.BytesIO(code), json.dumps(sent)).get_result())
        assert made.href == f"{DEEP_LEARNING}/hypersearch/{made.uid}"
        return str(made.uid)

    def show(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_one_hpo(name).get_result()
        HpoTaskState.from_dict(found)
        return found

    def until(self, condition: Callable[[], Any]) -> Any:
        """Let searches and jobs go on until something is so."""

        def seen() -> Any:
            self.room.keeper.look()
            self.played.tick(0.5)
            return condition()

        return wait_for(seen)

    def jobs(self, name: str, num: int) -> Sequence[Job]:
        """Return the jobs of a search as soon as so many run."""

        def running() -> Sequence[Job]:
            found = [job for job in self._all(name) if job.num_slots and not job.ended]
            return found if len(found) >= num else ()

        return list(self.until(running))

    def finish(self, job: Job, **metrics: Sequence[float]) -> None:
        """Let the plain script of an experiment leave its metrics, and end."""
        rows = [
            {"steps": step, **dict(zip(metrics, values, strict=True))}
            for step, values in enumerate(zip(*metrics.values(), strict=True), start=1)
        ]
        self.played.save(job.id, "val_dict_list.json", json.dumps(rows).encode())
        self.played.end_tasks(job.id, 0)
        self.played.until_ended(job.id)

    def _all(self, name: str) -> list[Job]:
        trials = self.played.store.searches.trials(name)
        found = [self.played.store.job(trial.job_id) for trial in trials]
        return [job for job in found if job is not None]


@pytest.fixture
def tuning(played: Played, client: DeepLearningImpactV1) -> Iterator[Tuning]:
    with tuned(played, client) as made:
        yield made


@contextmanager
def tuned(played: Played, client: DeepLearningImpactV1, advisers: AdviserSource | None = None) -> Iterator[Tuning]:
    """Yield a server with searches, and end those who ask for them."""
    made = Tuning(played, client, advisers)
    yield made
    for search in list(made.room.book.running()):
        made.room.book.remove(search)
    made.room.keeper.close()
    made.room.keeper.run()  # ends those who ask


def test_a_random_search_of_a_plain_script_finds_the_best(tuning: Tuning) -> None:
    name = tuning.start(hpo(hpoName="digits", algo_maxJobNum=2, algo_additionalMetrics={"acc": "maximize"}))
    assert name == "digits"
    begun = tuning.show(name)
    assert (begun["state"], begun["progress"], begun["creator"]) == ("SUBMITTED", "0/2", "admin")
    assert "best" not in begun
    assert begun["createtime"].endswith("Z")

    (job,) = tuning.jobs(name, 1)
    assert (job.spec.fixed, job.spec.max_tasks, job.spec.args) == (True, 1, ())
    assert job.spec.trial is not None
    assert json.loads(tuning.played.code(job.id)["config.json"]) == dict(job.spec.trial.values)
    running = tuning.show(name)
    assert (running["state"], running["running"], running["complete"], running["failed"]) == ("RUNNING", 1, 0, 0)
    assert [one["state"] for one in running["experiments"]] == ["RUNNING"]
    tuning.finish(job, loss=[0.5, 0.25, 0.75], acc=[0.1, 0.9, 0.8])
    (other,) = tuning.jobs(name, 1)
    tuning.finish(other, loss=[0.5], acc=[0.2])
    tuning.until(lambda: tuning.show(name)["state"] == "FINISHED")

    done = tuning.show(name)
    best = done["best"]
    assert best == done["experiments"][0]
    assert (best["id"], best["state"], best["metricVal"]) == (0, "FINISHED", 0.25)
    assert best["metrics"] == [
        {"name": "loss", "min": 0.25, "max": 0.75, "latest": 0.75},
        {"name": "acc", "min": 0.1, "max": 0.9, "latest": 0.8},
    ]
    assert best["hyperParams"] == [
        {
            "name": "lr",
            "type": "Range",
            "dataType": "DOUBLE",
            "fixedVal": repr(job.spec.trial.values["lr"]),
            "userDefined": False,
        }
    ]
    assert best["appId"].startswith("app-")
    assert best["driverId"].startswith("driver-")
    assert tuning.client.get_applications(applicationid=best["appId"]).get_result()[0]["state"] == "FINISHED"
    assert best["startTime"] <= best["endTime"]
    assert (done["running"], done["complete"], done["failed"], done["progress"]) == (0, 2, 0, "2/2")
    assert [len(part) for part in done["duration"].split(":")] == [2, 2, 2]
    assert done["algoDef"]["additionalMetrics"] == {"acc": "maximize"}
    assert done["hyperParams"] == [LR]
    with pytest.raises(ApiException, match="digits is already stopped: it is completed") as error:
        tuning.client.stop_one_hpo(name)
    assert error.value.status_code == 400


def test_a_search_without_a_result_has_failed(tuning: Tuning) -> None:
    name = tuning.start(hpo(algo_maxJobNum=1))
    assert name == "search-1"
    (job,) = tuning.jobs(name, 1)
    tuning.finish(job, accuracy=[0.5])
    tuning.until(lambda: tuning.show(name)["state"] == "FAILED")
    done = tuning.show(name)
    assert (done["failed"], done.get("best"), done["experiments"][0]["metricVal"]) == (1, None, None)
    assert "loss" in done["experiments"][0]["stateReason"]
    with pytest.raises(ApiException, match="not stopped"):
        tuning.client.restart_one_hpo(name)


def test_clients_of_instance_groups_get_the_name(tuning: Tuning) -> None:
    sent = hpo(modelSpec={"sigName": "default", "args": "--exec-start PyTorch --model-main a.py"})
    with httpx.Client(headers={"Authorization": f"Bearer {tuning.played.token}"}, verify=NO_TLS) as http:
        form: dict[str, Any] = {"data": {"data": json.dumps(sent)}, "files": {"file": b"print()"}}
        assert http.post(tuning.base, headers={"Accept": "application/json"}, **form).json() == "search-1"
        assert http.post(tuning.base, **form).text == "search-2"
        newer: dict[str, Any] = {"data": {"data": json.dumps(hpo())}, "files": {"file": b"print()"}}
        assert http.post(tuning.base, **newer).json()["uid"] == "search-3"
    assert tuning.start(sent) == "search-4"
    assert tuning.show("search-1")["modelSpec"] == sent["modelSpec"]


def test_a_folder_is_sent_as_a_tar(tuning: Tuning) -> None:
    args = "--exec-start PyTorch --model-dir digits --model-main main.py --batch 8"
    code = packed({"digits/main.py": "print()\n", "digits/config.json": "{}"})
    name = tuning.start(hpo(modelSpec={"args": args}), code)
    (job,) = tuning.jobs(name, 1)
    assert (job.spec.script, job.spec.args) == ("main.py", ("--batch", "8"))
    assert "lr" in json.loads(tuning.played.code(job.id)["config.json"])


def test_experiments_that_were_given_keep_their_ids(tuning: Tuning) -> None:
    experiments = [
        {"id": number, "hyperParams": [{"name": "lr", "dataType": "DOUBLE", "fixedVal": number / 10}]}
        for number in (3, 7)
    ]
    name = tuning.start(hpo("ExperimentGridSearch", hyperParams=[], experiments=experiments, algo_maxJobNum=-1))
    (job,) = tuning.jobs(name, 1)
    shown = [(one["id"], one["state"], one["hyperParams"][0]["fixedVal"]) for one in tuning.show(name)["experiments"]]
    assert shown == [(3, "RUNNING", "0.3"), (7, "NOTRUN", "0.7")]
    tuning.finish(job, loss=[0.5])
    (other,) = tuning.jobs(name, 1)
    tuning.finish(other, loss=[0.1])
    tuning.until(lambda: tuning.show(name)["state"] == "FINISHED")
    assert tuning.show(name)["best"]["id"] == 7


def test_hyperband_of_an_elastic_program_has_rungs(tuning: Tuning) -> None:
    params = {"ResourceName": "epochs", "ResourceValue": "9"}
    sent = hpo("Hyperband", params, algo_maxJobNum=-1, algo_maxParalleJobNum=4, **ELASTIC)
    name = tuning.start(sent, b"import fabric_model\n")
    found = tuning.room.book.require(name).search
    assert found.settings.halving == Halving(resource="epoch", min=1, max=9, factor=3, brackets=3)
    jobs = tuning.jobs(name, 4)
    config = json.loads(tuning.played.code(jobs[0].id)["config.json"])
    assert (config["epochs"], set(config)) == (9, {"lr", "epochs"})
    for place, job in enumerate(jobs):
        point = Metric(job_id=job.id, name="loss", step=10, epoch=1, at=1.0, value=1.0 + place)
        tuning.played.store.write(Writes(metrics=(point,)))
    tuning.until(lambda: [one.state for one in tuning.room.book.require(name).trials[:4]] == ["paused"] * 4)
    shown = tuning.show(name)
    assert [one["state"] for one in shown["experiments"][:4]] == ["SUBMITTED"] * 4
    assert shown["experiments"][0]["maxiteration"] == 9
    assert shown["notes"] == ""


def test_what_has_no_effect_is_told(tuning: Tuning) -> None:
    params = {"ResourceName": "epochs", "ResourceValue": "9"}
    args = "--exec-start PyTorch --model-main a.py --numPs 1"
    sent = hpo("Hyperband", params, modelSpec={"args": args})
    made = tuning.client.start_hpo(io.BytesIO(b"print()"), json.dumps(sent)).get_result()
    notes = made["notes"].splitlines()
    assert [one.split()[0] for one in notes] == ["--numPs", "Hyperband"]
    assert tuning.show(made["uid"])["notes"] == made["notes"]


def test_a_stopped_search_goes_on(tuning: Tuning) -> None:
    name = tuning.start(hpo(algo_maxJobNum=3))
    (job,) = tuning.jobs(name, 1)
    tuning.client.stop_one_hpo(name)
    stopped = tuning.show(name)
    assert (stopped["state"], stopped["experiments"][0]["state"]) == ("STOPPED", "RUNNING")
    tuning.finish(job, loss=[0.5])
    tuning.until(lambda: tuning.show(name).get("best"))
    assert (tuning.show(name)["state"], tuning.show(name)["complete"]) == ("STOPPED", 1)
    with pytest.raises(ApiException, match=r"is already stopped: it is stopped"):
        tuning.client.stop_one_hpo(name)
    tuning.client.restart_one_hpo(name)
    (again,) = tuning.jobs(name, 1)
    tuning.client.stop_one_hpo_force(name)
    tuning.played.until_ended(again.id)
    tuning.until(lambda: tuning.show(name)["experiments"][1]["state"] in ("KILLED", "STOPPED"))
    assert tuning.show(name)["state"] == "STOPPED"


def test_a_search_is_recovered_after_a_restart_or_is_restarted(played: Played, client: DeepLearningImpactV1) -> None:
    def fail(_: AdviserInput) -> Adviser:
        raise AdviserFailure("its state is of another version")

    def end(tuning: Tuning) -> None:
        tuning.room.keeper.close()
        tuning.room.keeper.run()

    first = Tuning(played, client)
    name = first.start(hpo(algo_maxJobNum=4))
    (job,) = first.jobs(name, 1)
    end(first)

    second = Tuning(played, client, AdviserSource(open=fail))
    assert second.show(name)["state"] == "RECOVERPEND"
    assert [one["state"] for one in client.get_all_hpo().get_result()] == ["RECOVERPEND"]
    second.room.keeper.look()
    assert second.show(name)["state"] == "RUNNING"
    second.finish(job, loss=[0.5])
    second.until(lambda: second.show(name)["state"] == "recoverfailed")
    assert second.show(name)["best"]["metricVal"] == 0.5
    with pytest.raises(ApiException, match="is already stopped: it is failed"):
        client.stop_one_hpo(name)
    end(second)

    with tuned(played, client) as third:
        client.restart_one_hpo(name)
        (again,) = third.jobs(name, 1)
        third.finish(again, loss=[0.25])
        third.until(lambda: third.show(name)["complete"] == 2)
        assert third.show(name)["state"] == "RUNNING"


def test_a_search_is_deleted_and_its_jobs_stay(tuning: Tuning) -> None:
    first, second = tuning.start(hpo(hpoName="a")), tuning.start(hpo(hpoName="b"))
    (job, *_) = tuning.jobs(first, 1)
    assert [one["hpoName"] for one in tuning.client.get_all_hpo().get_result()] == [first, second]
    tuning.client.delete_one_hpo(first)
    with pytest.raises(ApiException) as error:
        tuning.show(first)
    assert error.value.status_code == 404
    tuning.until(lambda: tuning.played.job(job.id).ended)
    tuning.start(hpo(hpoName="a"))
    tuning.played.http.post(
        "/searches",
        files={
            "job": (None, json.dumps(NATIVE)),
            "code": ("c.tar.gz", packed_code({"train.py": "import pliant.train\n"})),
        },
    ).raise_for_status()
    assert tuning.played.http.delete(tuning.base).json()["deleted"] == 2
    assert [one["hpoName"] for one in tuning.client.get_all_hpo().get_result()] == ["ours"]


NATIVE = {
    "name": "ours",
    "script": "train.py",
    "parameters": {
        "lr": {"kind": "float", "low": 0.001, "high": 0.1, "log": True},
        "opt": {"kind": "choice", "choices": ["sgd", "adam"]},
        "width": {"kind": "int", "low": 1, "high": 9, "step": 4},
        "depth": {"kind": "choice", "choices": [1, "two"]},
    },
    "objectives": [{"metric": "loss", "direction": "minimize"}],
    "max_trials": 4,
    "max_time_s": 120,
}


def test_a_search_that_was_begun_otherwise_is_one_too(tuning: Tuning) -> None:
    code = packed_code({"train.py": "import pliant.train\n"})
    tuning.played.http.post(
        "/searches", files={"job": (None, json.dumps(NATIVE)), "code": ("c.tar.gz", code)}
    ).raise_for_status()
    shown = tuning.show("ours")
    assert (shown["algoDef"]["algorithm"], shown["algoDef"]["maxRunTime"], shown["progress"]) == ("Tpe", 2.0, "0/4")
    assert [(one["name"], one["type"], one["dataType"]) for one in shown["hyperParams"]] == [
        ("lr", "Range", "DOUBLE"),
        ("opt", "Discrete", "STR"),
        ("width", "Range", "INT"),
        ("depth", "Discrete", "STR"),
    ]


def test_others_see_a_search_only_if_it_is_shared_with_them(tuning: Tuning) -> None:
    name = tuning.start(hpo())
    with tuning.played.client_of("ben") as other:
        assert other.get(f"{tuning.base}/{name}").status_code == 404
        assert other.get(tuning.base).json() == []
        tuning.room.requests.change(Principal(name="admin", role=Role.ADMIN), name, {"shared_with": ("ben",)})
        assert other.get(f"{tuning.base}/{name}").json()["hpoName"] == name
        for path in ("", "/force", "/restart"):
            assert other.put(f"{tuning.base}/{name}{path}").status_code == 403
        assert other.delete(f"{tuning.base}/{name}").status_code == 403
        assert other.delete(tuning.base).json()["deleted"] == 0
        assert tuning.room.book.require(name).search.state is SearchState.RUNNING


def test_the_algorithms_are_listed(tuning: Tuning) -> None:
    found = [HpoAlgorithmDesc.from_dict(one) for one in tuning.client.get_all_hpo_algorithm().get_result()]
    assert [(one.name, one.type) for one in found] == [
        (name, "BUILD_IN") for name in ("Random", "Bayesian", "Tpe", "Hyperband", "ExperimentGridSearch")
    ]
    assert tuning.client.get_one_algorithm("hyperband").get_result()["name"] == "Hyperband"
    with pytest.raises(ApiException, match="there is no algorithm 'Mine'"):
        tuning.client.get_one_algorithm("Mine")
    with pytest.raises(ApiException, match="neither BUILD_IN nor USER_PLUGIN"):
        tuning.client.get_all_hpo_algorithm(type="ours")
    with pytest.raises(ApiException, match="Tpe is built in, and stays"):
        tuning.client.delete_one_hpoalgorithm("tpe")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (hpo("Best"), "algoDef.algorithm: there is no algorithm 'Best'"),
        (hpo(algo_objectiveMetric=None), "algoDef.objectiveMetric: it is missing"),
        (hpo(hyperParams=[LR | {"maxDbVal": 0}]), "hyperParams.0.minDbVal: of 'lr': the range is empty"),
        (hpo(hyperParams=[LR | {"dataType": "FLOAT"}]), "hyperParams.0.dataType: of 'lr': 'FLOAT' is none of them"),
        (hpo(experiments=[{"id": 1}]), "experiments: there are hyperParams, too"),
        (hpo(modelSpec={}), "modelSpec.args: it is missing"),
        (hpo(modelSpec={"args": "--exec-start Nope --model-main a.py"}), "Nope"),
        (hpo(modelSpec={"sigName": "x", "args": "--exec-start PyTorch --model-main a.py"}), "sigName: Instance group"),
        (hpo(hpoName="a b"), "hpoName: 'a b' cannot be taken"),
        (hpo(hpoName="algorithm"), "hpoName: 'algorithm' is the path of the algorithms"),
        (hpo(hyperParams=[LR | {"name": "a.b"}, LR | {"name": "a_b"}]), "hyperParams.a_b: 'a.b' and 'a_b'"),
        (hpo(modelSpec={"args": "--exec-start PyTorch --model-main b.py --model-dir d"}), ""),
        ([], "data: it is no object"),
    ],
)
def test_what_is_wrong_is_told_in_ibms_form(tuning: Tuning, sent: Any, message: str) -> None:
    form = {"data": {"data": json.dumps(sent)}, "files": {"file": packed({"a.py": "print()"})}}
    told = tuning.played.http.post(tuning.base, headers={"Accept": "application/json"}, **form)  # type: ignore[arg-type]
    assert (told.status_code, told.json()["code"]) == (400, 400)
    assert message in told.json()["message"]


def test_all_that_is_wrong_is_told_at_once_and_a_taken_name_is_refused(tuning: Tuning) -> None:
    sent = hpo("Best", hpoName="-", modelSpec={"args": "--exec-start PyTorch --numWorker 2 --model-main a.py"})
    told = tuning.played.http.post(tuning.base, data={"data": json.dumps(sent)}, files={"file": b"print()"}).text
    assert [field for field in ("hpoName", "--numWorker", "algoDef.algorithm") if f"{field}: " not in told] == []
    assert "data" in tuning.played.http.post(tuning.base, files={"file": b"print()"}).text
    tuning.start(hpo(hpoName="one"))
    with pytest.raises(ApiException, match="there is a search 'one' already") as error:
        tuning.start(hpo(hpoName="one"))
    assert error.value.status_code == 400
