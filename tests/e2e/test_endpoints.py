"""Endpoints over real processes: they answer, grow at a training's cost, change version, and survive what dies."""

import itertools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool
from tests.e2e.serving import (
    crowd,
    versions_of_answers,
    write_model,
    write_model_of_parts,
    write_pingpong,
)
from tests.plain_http import NO_TLS

from pliant.api.endpoints import EndpointView
from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PACED = Path(__file__).with_name("paced.py")


@pytest.fixture(autouse=True)
def _no_endpoint_stays(pool: Pool) -> Iterator[None]:
    yield
    with pool.client() as client:
        for endpoint in client.endpoints.list().endpoints:
            client.endpoints.remove(endpoint.name)


def serving(client: Client, name: str) -> EndpointView:
    """Wait until an endpoint serves."""
    view = client.endpoints.wait(name, timeout_s=60)
    assert view.state in ("serving", "idle"), view.reason
    return view


def current(view: EndpointView) -> tuple[int, int]:
    """Return how many kernels of the version that serves are ready, and how many there are."""
    version = next(one for one in view.versions if one.number == view.current)
    return version.num_ready, version.num_kernels


def token(pool: Pool) -> str:
    return (pool.home / "token").read_text().strip()


def url(view: EndpointView) -> str:
    assert view.http_url is not None
    return view.http_url


def test_a_folder_is_deployed_by_one_command_and_asked_by_another(pool: Pool, tmp_path: Path) -> None:
    write_pingpong(tmp_path / "pingpong")

    said = pool.cli("deploy", str(tmp_path / "pingpong"))
    answer = pool.cli("predict", "pingpong", "--raw", "--data", '{"seq": 1}')
    shown = json.loads(pool.cli("endpoints", "show", "--json", "pingpong"))

    assert "pingpong" in said
    assert json.loads(answer) == {"pong": {"seq": 1}, "by": "pingpong"}
    assert (shown["state"], shown["versions"][0]["runner"]) == ("serving", "redhare")
    assert "started pingpong" in pool.cli("endpoints", "logs", "pingpong")


def test_a_model_that_answers_in_parts_is_followed_by_a_command_and_stopped_by_its_client(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    note = tmp_path / "closed"
    client.endpoints.deploy("parts", write_model_of_parts(tmp_path / "parts", note))
    view = serving(client, "parts")
    asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}

    lines = pool.cli("predict", "parts", "--stream", "--data", json.dumps(asked)).splitlines()
    flat = httpx.post(
        f"{url(view)}/v2/models/parts/generate_stream",
        headers={"Authorization": f"Bearer {token(pool)}"},
        json={"x": [3, 4]},
        verify=NO_TLS,
        trust_env=False,
    )
    assert [json.loads(line)["outputs"][0]["data"] for line in lines] == [[2.0], [4.0]]
    events = [json.loads(one.removeprefix("data: ")) for one in flat.text.split("\n\n") if one]
    assert [one["y"] for one in events] == [6.0, 8.0]

    note.unlink()
    endless = client.endpoints.stream("parts", {"x": [-1]})
    first = [next(endless)["y"].tolist() for _ in range(100)]
    assert not note.exists()
    endless.close()
    pool.until(note.exists, "the generator of the model is closed")
    assert first == [-2.0, *[-1.0] * 99]


def test_under_load_it_takes_slots_of_a_training_and_gives_them_back(
    pool: Pool, client: Client, tmp_path: Path, pace: Pace
) -> None:
    job_id = pool.submit(PACED, "--max", "8", args=("--epochs", "1000", "--pace", str(pace)))
    pool.until(lambda: len(pool.training(client, job_id)) == 8, "the training has all slots")
    write_model(tmp_path / "slow", seconds=0.05)
    client.endpoints.deploy("slow", tmp_path / "slow", kernel_max=3, batch_size=1, pipe_size=1, release_delay_s=1)
    view = serving(client, "slow")

    with crowd(url(view), token(pool), "slow", num_clients=12) as asked:
        pool.until(lambda: current(client.endpoints.get("slow"))[0] == 3, "three kernels answer")
        shrunk = len(pool.training(client, job_id))
    pool.until(lambda: current(client.endpoints.get("slow"))[1] == 0, "the endpoint holds no slot")
    pool.until(lambda: len(pool.training(client, job_id)) == 8, "the training has all slots again")

    job = client.job(job_id).job
    assert (asked.wrong, set(asked.statuses), asked.num_broken) == ([], {200}, 0)
    assert shrunk <= 5
    assert (job.state, job.num_redone_steps) == ("running", 0)

    with crowd(url(view), token(pool), "slow", num_clients=1) as first:
        pool.until(lambda: first.num_answered, "the first request has brought a kernel")
    assert first.wrong == []


def test_versions_are_exchanged_under_load_without_a_failed_or_mixed_answer(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "two", factor=2)
    client.endpoints.deploy("double", model, kernel_min=1, kernel_max=2, release_delay_s=1)
    view = serving(client, "double")

    with crowd(url(view), token(pool), "double", num_clients=4) as asked:
        pool.until(lambda: asked.num_answered > 20, "the first version answers")
        client.endpoints.deploy("double", write_model(tmp_path / "three", factor=3))
        pool.until(lambda: client.endpoints.get("double").current == 2, "the second version serves")
        client.endpoints.deploy("double", write_model(tmp_path / "none", factor=0))
        failed = client.endpoints.wait("double", timeout_s=60)
        pool.until(lambda: asked.factors and asked.factors[-1][1] == 3, "the second version answers")
        client.endpoints.rollback("double", 1)
        pool.until(lambda: client.endpoints.get("double").current == 1, "the first version serves again")
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "answers go on")
        num = asked.num_answered
        client.endpoints.split("double", {1: 90, 2: 10})
        pool.until(lambda: 3 in [factor for _, factor in asked.factors[num:]], "the canary answers, too")
    split = versions_of_answers(url(view), token(pool), "double", 200)
    back = client.endpoints.rollback("double")

    assert split == {"1": 180, "2": 20}
    assert [one.traffic for one in back.versions] == [100, 0, 0]
    factors = [factor for _, factor in sorted(asked.factors[:num])]
    changes = [factor for factor, _ in itertools.groupby(factors)]
    assert (asked.wrong, asked.num_broken) == ([], 0)
    assert (failed.current, failed.versions[-1].state) == (2, "failed")
    assert "this model cannot be loaded" in failed.versions[-1].reason
    assert (changes[0], changes[-1], set(changes)) == (2, 2, {2, 3})


def test_whatever_is_killed_under_load_no_request_is_lost_but_those_of_a_broken_connection(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "model", seconds=0.01)
    client.endpoints.deploy("double", model, kernel_min=2, kernel_max=2, batch_size=4)
    serving(client, "double")
    view = pool.until(
        lambda: current(found := client.endpoints.get("double"))[0] == 2 and found, "both kernels are ready"
    )
    kernels = next(one for one in view.versions if one.number == 1).kernels

    with crowd(url(view), token(pool), "double", num_clients=4) as asked:
        pool.until(lambda: asked.num_answered > 20, "it answers")
        assert kernels[0].pid is not None
        os.kill(kernels[0].pid, signal.SIGKILL)
        pool.until(
            lambda: kernels[0].task_id not in str(found := client.endpoints.get("double")) and current(found)[0] == 2,
            "another kernel has taken its place",
        )
        assert (asked.wrong, asked.num_broken) == ([], 0)

        pool.signal(signal.SIGKILL)
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "it answers without a server")
        pool.up()
        pool.until(lambda: current(client.endpoints.get("double")) == (2, 2), "the next server knows both kernels")
        assert (asked.wrong, asked.num_broken) == ([], 0)

        gateway = json.loads((pool.home / "gateway" / "gateway.json").read_text())["pid"]
        os.kill(gateway, signal.SIGKILL)
        pool.until(lambda: asked.num_broken, "the gateway is gone")
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "the next gateway answers")

    kept = {one.task_id for one in kernels[1:]}
    assert asked.wrong == []
    assert kept <= {one.task_id for one in client.endpoints.get("double").versions[0].kernels}


def test_two_endpoints_share_a_slot_beside_a_training(pool: Pool, client: Client, tmp_path: Path, pace: Pace) -> None:
    job_id = pool.submit(PACED, "--max", "8", args=("--epochs", "1000", "--pace", str(pace)))
    pool.until(lambda: len(pool.training(client, job_id)) == 8, "the training has all slots")
    for name, factor, part in (("digits", 2, "0.25"), ("shop", 3, "0.5")):
        write_model(tmp_path / name, factor=factor)
        pool.cli("deploy", str(tmp_path / name), "--min", "1", "--slots-per-task", part)
    views = [serving(client, name) for name in ("digits", "shop")]

    held = {(kernel.node_id, slot) for view in views for kernel in view.versions[0].kernels for slot in kernel.slots}
    pool.until(lambda: len(pool.training(client, job_id)) == 7, "the training has the other slots")
    (shared,) = [slot for slot in client.cluster().slots if slot.sharers]
    answers = [json.loads(pool.cli("predict", view.name, "--raw", "--data", '{"value": 5}')) for view in views]
    shown = pool.cli("endpoints", "show", "digits")

    assert held == {(shared.node_id, shared.slot)}
    assert len(shared.sharers) == 2
    assert [answer["factor"] for answer in answers] == [2, 3]
    assert "0.25 of a slot" in shown
    refused = pool.cli("deploy", str(tmp_path / "shop"), "--name", "third", "--slots-per-task", "1.5", code=2)
    assert "1.5 is neither a whole number of slots nor a part of one" in refused
