"""Instance groups by Conductor's routes, and running applications that are changed, over the simulator's cluster."""

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1
from tests.ibm.rest.conftest import CONDUCTOR, DEEP_LEARNING
from tests.server.played import Played

from pliant.core.access import Role
from pliant.core.plan import PolicyName

GROUP = {
    "sparkversion": "2.3.3",
    "conductorinstancename": "EDT-IG",
    "consumerpath": "/",
    "parameters": {
        "execution_user": "egoadmin",
        "driver_rg_param": "ComputeHosts",
        "executor_rg_param": "ComputeHosts",
    },
    "notebooks": [],
    "sparkparameters": {"SPARK_EGO_APP_SCHEDULE_POLICY": "hierarchy", "SPARK_EGO_ENABLE_PREEMPTION": "false"},
}
"""As IBM's scripts send it."""
ARGS = "--exec-start edtPyTorch --model-main train.py --numWorker 4 --msd-priority 5000"


@pytest.fixture
def http(played: Played) -> Iterator[httpx.Client]:
    """What shows the administrator's token, below the root."""
    with httpx.Client(base_url=played.url, headers={"Authorization": f"Bearer {played.token}"}) as found:
        yield found


def state(http: httpx.Client, group: str) -> str:
    """Return the state of an instance group, as scripts ask for it."""
    (found,) = http.get(f"{CONDUCTOR}/instances", params={"fields": "state", "id": group}).json()
    return str(found["state"])


def test_an_instance_group_is_made_as_ibm_s_scripts_do_it(
    played: Played, client: DeepLearningImpactV1, http: httpx.Client
) -> None:
    made = http.post(f"{CONDUCTOR}/instances", json=GROUP)
    assert (made.status_code, made.json()) == (200, "EDT-IG")
    path = f"{CONDUCTOR}/instances/EDT-IG"
    assert state(http, "EDT-IG") == "REGISTERED"
    queue = played.control.queues.queue("EDT-IG").noun
    assert (queue.resource_group, queue.policy, queue.preemption, queue.open) == (
        "all",
        PolicyName.PRIORITY,
        False,
        False,
    )
    refused = http.post(
        f"{DEEP_LEARNING}/execs", params={"args": ARGS, "sigName": "EDT-IG"}, files={"file": b"print()"}
    )
    assert refused.status_code == 400
    assert refused.text.startswith("sigName: queue 'EDT-IG' is closed")
    seen = []
    for step in ("deploy", "start"):
        assert http.put(f"{path}/{step}").is_success
        seen.append(state(http, "EDT-IG"))
    assert seen == ["READY", "STARTED"]
    assert client.create_exec("EDT-IG", ARGS, io.BytesIO(b"print()\n")).get_result()["sigName"] == "EDT-IG"
    assert http.put(f"{path}/stop").json()["state"] == "READY"
    assert "have not ended: job-1" not in (busy := http.delete(path)).text
    assert (busy.status_code, "wmla-1" in busy.text) == (400, True)
    played.http.post("/jobs/job-1/stop")
    played.until_ended("job-1")
    assert http.delete(path).is_success
    assert http.get(path).status_code == 404
    assert [group["id"] for group in http.get(f"{CONDUCTOR}/instances").json()] == ["default"]


def test_a_group_that_is_made_anew_is_not_deployed(played: Played, http: httpx.Client) -> None:
    assert http.post(f"{CONDUCTOR}/instances", json=GROUP).is_success
    assert http.post(f"{CONDUCTOR}/instances", json=GROUP).status_code == 400
    assert played.http.delete("/queues/EDT-IG").is_success  # not as a group
    played.tick(1.0)
    assert played.http.post("/queues", json={"name": "EDT-IG", "open": False}).is_success
    assert state(http, "EDT-IG") == "READY"
    assert http.delete(f"{CONDUCTOR}/instances/EDT-IG").is_success
    assert http.post(f"{CONDUCTOR}/instances", json=GROUP).is_success
    assert state(http, "EDT-IG") == "REGISTERED"


def test_a_group_is_changed_and_a_wrong_one_refused_with_all_that_is_wrong(played: Played, http: httpx.Client) -> None:
    assert http.post(f"{CONDUCTOR}/instances", json=GROUP).is_success
    assert played.http.post("/resource-groups", json={"name": "gpus", "hosts": {"all": True}}).is_success
    change = {"parameters": {"executor_gpu_rg_param": "gpus"}, "sparkparameters": {"SPARK_EGO_ENABLE_PREEMPTION": True}}
    assert http.put(f"{CONDUCTOR}/instances/EDT-IG", json=change).is_success
    queue = played.control.queues.queue("EDT-IG").noun
    assert (queue.resource_group, queue.policy, queue.preemption) == ("gpus", PolicyName.PRIORITY, True)
    wrong: dict[str, Any] = {
        "conductorinstancename": "other",
        "parameters": {"executor_rg_param": "none"},
        "sparkparameters": {"SPARK_EGO_APP_SCHEDULE_POLICY": "best", "SPARK_EGO_ENABLE_PREEMPTION": "perhaps"},
    }
    refused = http.post(f"{CONDUCTOR}/instances", json=wrong)
    assert refused.status_code == 400
    words = ("executor_rg_param: there is no resource group 'none'", "'best' is none of", "'perhaps' is neither")
    assert [word for word in words if word not in refused.text] == []
    nameless = http.post(f"{CONDUCTOR}/instances", json={})
    assert (nameless.status_code, "conductorinstancename" in nameless.text) == (400, True)
    assert http.put(f"{CONDUCTOR}/instances/EDT-IG", json={"conductorinstancename": "x"}).status_code == 400
    assert http.put(f"{CONDUCTOR}/instances/nobody", json=change).status_code == 404
    with played.client_of("ada", Role.USER) as ada:
        root = f"{played.url}{CONDUCTOR}/instances"
        tries = (("POST", root), *(("PUT", f"{root}/EDT-IG{way}") for way in ("", "/deploy", "/start", "/stop")))
        assert {ada.request(method, url, json=GROUP).status_code for method, url in tries} == {403}
    assert http.delete(f"{DEEP_LEARNING}/resplans/resplan/EDT-IG").is_success
    assert http.get(f"{CONDUCTOR}/instances/EDT-IG").status_code == 404


def test_the_priority_of_a_running_application_is_changed(
    played: Played, client: DeepLearningImpactV1, http: httpx.Client
) -> None:
    made = client.create_exec("default", ARGS, io.BytesIO(b"print()\n")).get_result()
    played.tick(1.0)
    path = f"{DEEP_LEARNING}/scheduler/applications/{made['appId']}"
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        (path, {"json": {"priority": 10000}}),
        (path, {"params": {"priority": "7000"}}),
        (f"{CONDUCTOR}/instances/default/applications/{made['submissionId']}", {"json": {"priority": "3000"}}),
    )
    for (url, given), expected in zip(ways, (10000, 7000, 3000), strict=True):
        assert http.put(url, **given).json()["priority"] == expected
        assert played.job("job-1").priority == expected
    for wrong in ({}, {"json": {"priority": 0}}, {"json": {"priority": 10001}}, {"json": {"priority": "high"}}):
        refused = http.put(path, **wrong)
        assert (refused.status_code, "priority" in refused.text) == (400, True)
    with played.client_of("ada", Role.USER) as ada:
        assert ada.put(f"{played.url}{path}", json={"priority": 1}).status_code == 404
    stopping = http.put(f"{CONDUCTOR}/instances/default/applications/{made['appId']}/stop")
    assert stopping.is_success
    played.until_ended("job-1")
    assert http.put(path, json={"priority": 1}).status_code == 400
