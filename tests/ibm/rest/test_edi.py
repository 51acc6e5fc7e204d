"""IBM's inference API by IBM's own client, over the real use cases of endpoints and the simulator's cluster."""

import inspect
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_cloud_sdk_core.authenticators import BasicAuthenticator
from ibm_wmla.edi_authentication import ElasticDistributedInferenceAuthenticator
from ibm_wmla.wmla_api_edi_v2 import ElasticDistributedInferenceV2
from tests.ibm.rest.edi import client_of, package
from tests.plain_http import NO_TLS
from tests.server.conftest import PASSWORD, TOKEN, Served, wait_for
from tests.server.played_gateway import PlayedGateway, ServedWithGateway

from pliant.core.access import Permission, Role
from pliant.core.people import TokenSettings

Answer = Callable[[Mapping[str, Any], bytes], tuple[int, bytes]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWithGateway]:
    server = ServedWithGateway(tmp_path_factory.mktemp("edi"))
    yield server
    server.close()


@pytest.fixture
def server(served: ServedWithGateway) -> Iterator[ServedWithGateway]:
    yield served
    for shown in served.http.get("/endpoints").json()["endpoints"]:
        assert served.http.delete(f"/endpoints/{shown['name']}").status_code == 204
    served.gateway_url = None
    served.forget_people()


@pytest.fixture
def edi(server: ServedWithGateway) -> ElasticDistributedInferenceV2:
    return client_of(server)


@pytest.fixture
def gateway(server: ServedWithGateway) -> Iterator[PlayedGateway]:
    with closing(PlayedGateway()) as found:
        server.gateway_url = found.url
        yield found


def token_of(server: Served, name: str, role: Role = Role.USER, scope: Permission | None = None) -> str:
    """Return a token of a user, who is made if need be."""
    if server.people.accounts.find(name) is None:
        server.add_user(name, role)
    scopes = None if scope is None else frozenset({scope})
    return server.people.credentials.make_token(name, TokenSettings(label="t", scopes=scopes)).text


def refused(call: Callable[..., Any], *given: Any, **more: Any) -> tuple[int, str]:
    """Return the status and the message that a call is refused with."""
    with pytest.raises(ApiException) as caught:
        call(*given, **more)
    response = caught.value.http_response
    assert response is not None
    return response.status_code, response.text


def update(edi: ElasticDistributedInferenceV2, model: Mapping[str, Any], **changes: Any) -> None:
    """Send a model as it was shown, but for these changes."""
    known = set(inspect.signature(edi.update_model).parameters) & set(model)
    edi.update_model(model["name"], **{name: model[name] for name in known} | changes)


@pytest.mark.parametrize("folder", ["", "pingpong/"])
def test_a_package_is_deployed_listed_served_and_removed(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2, folder: str
) -> None:
    made = edi.deploy_model(body=package(folder=folder, attributes=[{"key": "a", "value": "b"}])).get_result()
    assert (made["name"], made["version"]) == ("pingpong", 1)
    assert edi.get_model_instance("pingpong").get_result()["state"] == "not-available"
    server.load_model("pingpong")
    model = edi.get_model("pingpong").get_result()
    assert edi.get_models().get_result() == [model]
    assert (model["tag"], model["kernel_path"], model["runtime"]) == ("test", "kernel.py", "dlipy3")
    assert (model["attributes"], model["state"]) == ([{"key": "a", "value": "b"}], "serving")
    assert edi.get_model_readme("pingpong").get_result() == {"readme": "# Ping\n"}
    instance = edi.get_model_instance("pingpong").get_result()
    (container,) = instance["instances"][0]["isd_container"]
    assert (instance["state"], container["container_status"]) == ("enabled", "running")
    extended = edi.get_model_extensions().get_result()
    assert extended["extension_list"] == [{"name": "pingpong", "resource_plan": "/pliant/default"}]
    edi.stop_model_inference("pingpong")
    assert edi.get_model_instance("pingpong").get_result()["state"] == "disabled"
    edi.start_model_inference("pingpong")
    assert server.http.get("/endpoints/pingpong").json()["started"] is True
    edi.delete_model("pingpong")
    assert refused(edi.get_model, "pingpong")[0] == 404


def test_what_is_deployed_anew_is_a_version_and_what_is_wrong_is_told(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    assert refused(edi.re_deploy_model, "pingpong", body=package())[0] == 404
    edi.deploy_model(body=package())
    assert refused(edi.deploy_model, body=package())[0] == 400
    made = edi.re_deploy_model("pingpong", body=package(tag="new", readme="two")).get_result()
    assert (made["version"], edi.get_model("pingpong").get_result()["tag"]) == (2, "new")
    wrong: list[tuple[Any, str]] = [
        (b"no archive", "not a whole"),
        (b"", "it is empty"),
        (package("other"), "other"),
        (package(runtime="none"), "Runtime not found"),
        (package(tag="\0"), "NUL"),
        (package(readme="x" * (65 << 10)), "longer than 64 KiB"),
        (package(kernel_path="gone.py"), "kernel_path: "),
        (package(folder="a/b/"), "no model.json"),
    ]
    for body, words in wrong:
        status, text = refused(edi.re_deploy_model, "pingpong", body=body)
        assert (status in (400, 413), words in text) == (True, True), text
    assert len(server.http.get("/endpoints/pingpong").json()["versions"]) == 2


def test_a_profile_is_changed_while_the_model_serves(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    edi.deploy_model(body=package())
    profile = edi.get_model_profile("pingpong").get_result()
    assert profile["policy"] == {
        "name": "capacity",
        "stream_discard_slow_tasks": True,
        "stream_number_per_group": 0,
        "kernel_min": 1,
        "kernel_max": 100,
        "task_batch_size": 1,
        "task_pipe_size": 1,
        "task_execution_timeout": 60,
        "kernel_delay_release_time": 60,
        "schedule_interval": 3,
    }
    profile["policy"] |= {"kernel_max": -1, "task_batch_size": 4, "task_execution_timeout": -1}
    profile["kernel"] |= {
        "run_as": "egoadmin",
        "envs": [{"name": "API_KEY", "value": "s"}, {"name": "A", "value": "b"}],
    }
    profile["security"] = {"ssl": {"enable": True}}
    told = edi.update_model_profile("pingpong", profile).get_result()
    assert {one.partition(":")[0] for one in told["notes"]} == {"kernel.run_as", "security.ssl.enable", "kernel.envs"}
    endpoint = server.http.get("/endpoints/pingpong").json()
    assert (endpoint["kernel_max"], endpoint["batch_size"], endpoint["execution_timeout_s"]) == (4096, 4, 86400.0)
    shown = edi.get_model_profile("pingpong").get_result()
    assert (shown["policy"]["kernel_max"], shown["policy"]["task_execution_timeout"]) == (-1, -1)
    assert (shown["kernel"]["run_as"], shown["security"]) == ("egoadmin", {"ssl": {"enable": True}})
    assert shown["kernel"]["envs"] == [{"name": "API_KEY", "value": "(hidden)"}, {"name": "A", "value": "b"}]
    edi.update_model_profile("pingpong", shown)  # as it was shown, and nothing is lost
    edi.re_deploy_model("pingpong", body=package())
    (kept,) = [one.noun for one in server.room.catalog.all()]
    assert (kept.versions[-1].env, kept.batch_size) == ({"API_KEY": "s", "A": "b"}, 4)


def test_a_profile_that_is_wrong_is_refused_by_ibms_names(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    edi.deploy_model(body=package())
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"policy": deep}
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({"policy": {"kernel_max": 0, "task_batch_size": "4"}}, ["policy.kernel_max: ", "policy.task_batch_size: "]),
        ({"policy": {"kernel_min": 5, "kernel_max": 2}}, ["policy.kernel_min: "]),
        ({"policy": 3}, ["policy: "]),
        ({"kernel": {"gpu": "shared", "envs": [3]}, "name": "x"}, ["kernel.gpu: ", "kernel.envs: ", "name: "]),
        ({"junk": "x" * (65 << 10)}, ["longer than 64 KiB"]),
        ({"junk": "\0"}, ["NUL"]),
        ({"junk": "\ud800"}, ["Unicode"]),
        ({"junk": float("nan")}, ["finite"]),
        (deep, ["nested deeper"]),
    ]
    for profile, words in wrong:
        status, text = refused(edi.update_model_profile, "pingpong", profile)
        assert (status, [one for one in words if one not in text]) == (400, []), text
    assert server.http.get("/endpoints/pingpong").json()["revision"] == 1


def test_tags_and_readmes_change_and_what_the_package_says_does_not(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    edi.deploy_model(body=package())
    model = edi.get_model("pingpong").get_result()
    update(edi, model, tag="two")
    assert edi.get_model("pingpong").get_result()["tag"] == "two"
    assert "runtime: " in refused(update, edi, model, runtime="other")[1]
    edi.update_model_readme("pingpong", readme="better")
    assert edi.get_model_readme("pingpong").get_result()["readme"] == "better"
    assert refused(edi.update_model_readme, "pingpong", readme="x" * (65 << 10))[0] == 400
    edi.delete_model("pingpong")
    edi.deploy_model(body=package(readme=""))
    assert edi.get_model_readme("pingpong").get_result()["readme"] == ""


def test_a_folder_of_the_server_becomes_a_model_for_who_runs_it(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2, tmp_path: Path
) -> None:
    (tmp_path / "kernel.py").write_text("import redhareapi\n")
    assert edi.new_model(name="m", model_path=str(tmp_path), tag="t", runtime="python").get_status_code() == 200
    assert edi.get_model("m").get_result()["tag"] == "t"
    assert "name: " in refused(edi.new_model, model_path=str(tmp_path))[1]
    ada = client_of(server, token_of(server, "ada"))
    assert refused(ada.new_model, name="n", model_path=str(tmp_path))[0] == 403


def test_runtimes_are_environments_and_those_that_are_always_there(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    there = edi.get_runtimes().get_result()["runtimes"]
    assert [one["type"] for one in there] == ["dlipy3", "python"]
    assert edi.get_runtime_details("python").get_result()["launcher"] == "python"
    assert refused(edi.get_runtime_details, "none")[0] == 404
    status, text = refused(edi.new_runtime, {"type": "mine", "launcher": "python3", "docker_img": "x"})
    assert (status, "docker_img: " in text, "conda_env_name: " in text) == (400, True, True)
    status, text = refused(edi.new_runtime, {"type": "mine", "launcher": "python", "conda_env_name": "nowhere-9"})
    assert (status, "conda_env_name: " in text) == (400, True)
    assert refused(edi.delete_runtime, "python")[0] == 403
    assert refused(edi.update_runtime, "none", {"type": "none"})[0] == 404


def test_a_runtime_is_made_of_a_conda_environment_changed_and_used(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        prefix = tmp_path / "envs" / name
        (prefix / "conda-meta").mkdir(parents=True)
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python").symlink_to(sys.executable)
    body = {"type": "mine", "launcher": "python", "conda_home": str(tmp_path), "conda_env_name": "one"}
    edi.new_runtime(body)
    assert edi.get_runtime_details("mine").get_result()["conda_env_name"] == "one"
    ada = client_of(server, token_of(server, "ada"))
    assert refused(ada.update_runtime, "mine", body)[0] == 404  # it is not shared with her
    edi.update_runtime("mine", body | {"conda_env_name": "two"})
    assert refused(edi.update_runtime, "mine", body | {"conda_env_name": "three"})[0] == 400
    assert edi.get_runtime_details("mine").get_result()["conda_env_name"] == "two"
    edi.deploy_model(body=package(runtime="mine"))
    (kept,) = [one.noun for one in server.room.catalog.all()]
    assert (kept.versions[0].environment, edi.get_model("pingpong").get_result()["runtime"]) == ("mine", "mine")
    edi.delete_model("pingpong")
    server.room.keeper.look()
    for _ in range(100):
        server.tick(1.0)
        if all(one.job.ended for one in server.control.jobs().values()):
            break
    edi.delete_runtime("mine")
    assert [one["type"] for one in edi.get_runtimes().get_result()["runtimes"]] == ["dlipy3", "python"]


def test_people_see_their_own_models_and_change_no_other(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    ada, ben = (client_of(server, token_of(server, name)) for name in ("ada", "ben"))
    ada.deploy_model(body=package())
    assert ben.get_models().get_result() == []
    assert refused(ben.get_model_profile, "pingpong")[0] == 404
    assert refused(ben.re_deploy_model, "pingpong", body=package())[0] == 404
    assert server.http.patch("/endpoints/pingpong", json={"shared_with": ["ben"]}).is_success
    assert ben.get_model("pingpong").get_result()["creator"] == "ada"
    changes: list[Callable[[], Any]] = [
        lambda: update(ben, ben.get_model("pingpong").get_result(), tag="mine"),
        lambda: ben.update_model_readme("pingpong", readme="mine"),
        lambda: ben.update_model_profile("pingpong", {"junk": 1}),
        lambda: ben.re_deploy_model("pingpong", body=package()),
        lambda: ben.stop_model_inference("pingpong"),
        lambda: ben.delete_model("pingpong"),
    ]
    assert [refused(change)[0] for change in changes] == [403] * len(changes)
    viewer = client_of(server, token_of(server, "vic", Role.VIEWER))
    assert refused(viewer.deploy_model, body=package("other"))[0] == 403
    app = client_of(server, token_of(server, "ada", scope=Permission.INFER))
    assert refused(app.get_models)[0] == 403
    nobody = httpx.get(f"http://{server.address}/dlim/v1/model", verify=NO_TLS)
    assert (nobody.status_code, nobody.headers["content-type"]) == (401, "text/plain; charset=utf-8")


def test_tokens_are_given_for_a_password_and_one_only_asks_models(
    server: ServedWithGateway, gateway: PlayedGateway
) -> None:
    server.add_user("ada")
    url = f"http://{server.address}"
    by_password = ElasticDistributedInferenceV2(authenticator=BasicAuthenticator("ada", PASSWORD))
    by_password.set_service_url(url)
    first, again = (by_password.get_auth_token().get_result() for _ in range(2))
    assert first == again
    assert by_password.get_inference_token().get_result()["service_token"] == first["service_token"]
    authenticator = ElasticDistributedInferenceAuthenticator("ada", PASSWORD, url=url)
    edi = ElasticDistributedInferenceV2(authenticator=authenticator)
    edi.set_service_url(url)
    edi.deploy_model(body=package())
    assert edi.run_inference("pingpong", {"x": 1}).get_result() == {"x": 1}
    app = client_of(server, first["service_token"])
    assert app.run_inference("pingpong", {"x": 2}).get_result() == {"x": 2}
    assert refused(app.get_model, "pingpong")[0] == 403
    assert refused(app.get_inference_token)[0] == 403
    own = token_of(server, "ada")
    assert client_of(server, own).get_inference_token().get_result()["service_token"] == own
    itself = token_of(server, "ada", scope=Permission.SELF)
    assert refused(client_of(server, itself).get_inference_token)[0] == 400
    assert by_password.run_inference("pingpong", {"x": 3}).get_result() == {"x": 3}
    assert {headers["authorization"] for _, headers, _ in gateway.seen} == {
        f"Bearer {first['user_token']}",
        f"Bearer {first['service_token']}",
    }


def test_a_token_for_named_models_reaches_no_other(server: ServedWithGateway, gateway: PlayedGateway) -> None:
    edi = client_of(server, token_of(server, "ada"))
    for name in ("pingpong", "secret"):
        edi.deploy_model(body=package(name))
    settings = TokenSettings(label="shop", scopes=frozenset({Permission.INFER}), endpoints=frozenset({"pingpong"}))
    shop = client_of(server, server.people.credentials.make_token("ada", settings).text)

    assert shop.run_inference("pingpong", {"x": 1}).get_result() == {"x": 1}
    assert refused(shop.run_inference, "secret", {})[0] == 404
    assert [scope["path"] for scope, _, _ in gateway.seen] == ["/dlim/v1/inference/pingpong"]
    assert refused(shop.get_models)[0] == 403


def test_inference_goes_through_as_it_is_and_is_no_change(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2
) -> None:
    edi.deploy_model(body=package())
    url = f"http://{server.address}/dlim/v1/inference/pingpong"
    headers = {"X-User-Token": token_of(server, "root", Role.ADMIN), "Content-Type": "application/json"}
    assert httpx.post(url, headers=headers, content=b"{}", verify=NO_TLS).status_code == 503
    body = bytes(range(256)) * (3 << 12)  # 3 MiB, more than other routes take
    with closing(PlayedGateway()) as gateway:
        server.gateway_url = gateway.url
        whole = httpx.post(url, headers=headers, content=body, verify=NO_TLS)
        assert (whole.status_code, whole.content == body, whole.headers["retry-after"]) == (200, True, "3")
        parts = httpx.post(url, headers=headers, content=iter([b"a", b"b"]), verify=NO_TLS)
        assert parts.content == b"ab"
        gateway.status = 429
        assert httpx.post(url, headers=headers, content=b"{}", verify=NO_TLS).status_code == 429
        gateway.reads, gateway.status = False, 413
        early = httpx.post(url, headers=headers, content=body, verify=NO_TLS)
        assert (early.status_code, early.json()) == (413, {"error": "too long"})
    gone = httpx.post(url, headers=headers, content=b"{}", verify=NO_TLS)
    assert (gone.status_code, "cannot be reached" in gone.text) == (503, True)
    assert refused(edi.run_inference, "nobody", {})[0] == 404
    actions = [one.action for one in server.store.audit.entries() if one.status not in (401, 403)]
    assert "POST /dlim/v1/deployment/model" in actions
    assert not any("inference/pingpong" in one for one in actions)


def test_a_model_says_where_it_is_asked_for_answers_in_parts(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2, gateway: PlayedGateway
) -> None:
    edi.deploy_model(body=package())
    assert edi.get_model_stream_url("pingpong").get_result() == {"streaming_service_uri": "127.0.0.1:7313"}
    assert refused(edi.get_model_stream_url, "nobody")[0] == 404
    server.gateway_url = None
    assert refused(edi.get_model_stream_url, "pingpong")[0] == 503


def test_who_goes_away_takes_the_request_away(
    server: ServedWithGateway, edi: ElasticDistributedInferenceV2, gateway: PlayedGateway
) -> None:
    edi.deploy_model(body=package())
    gateway.answers.clear()
    host, _, port = server.address.partition(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /dlim/v1/inference/pingpong HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {TOKEN}\r\nContent-Length: 2"
        client.sendall(f"{head}\r\n\r\n{{}}".encode())
        wait_for(lambda: gateway.seen)
    assert gateway.lost.wait(30.0)
