"""The endpoints of a client: against a real server, and a gateway of one model."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.server.played import Played
from tests.tiny_gateway import Gateway, tiny_gateway

from pliant.api.endpoints import DeployRequest, EndpointAddress, EndpointPatch
from pliant.client import Client
from pliant.core.errors import (
    Forbidden,
    InternalError,
    InvalidInput,
    NotFound,
    PliantError,
    Stale,
    TooLarge,
    TooMany,
    Unavailable,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "serve.py").write_text("def load(): ...\n")
    (folder / "model.pt").write_bytes(b"weights")
    return folder


@pytest.fixture
def gateway(shown: Played) -> Iterator[Gateway]:
    with tiny_gateway(shown.token) as gateway:
        shown.endpoints.http_url = gateway.url
        yield gateway
    shown.endpoints.http_url = None


@pytest.fixture(autouse=True)
def without_endpoints(client: Client) -> Iterator[None]:
    yield
    for view in client.endpoints.list().endpoints:
        client.endpoints.remove(view.name)


def test_a_folder_is_packed_and_deployed(client: Client, shown: Played, folder: Path) -> None:
    view = client.endpoints.deploy("digits", folder, kernel_min=1, env={"A": "b"})
    assert shown.endpoints.files["digits"] == ("model.pt", "serve.py")
    assert (view.name, view.kernel_min, view.state) == ("digits", 1, "starting")
    assert (view.versions[0].source, view.versions[0].env) == ("digits", {"A": "b"})
    assert client.endpoints.list().endpoints == (view,)


def test_a_file_and_an_archive_are_deployed_as_they_are(client: Client, shown: Played, folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"onnx")
    client.endpoints.deploy("one", folder / "model.onnx")
    assert shown.endpoints.files["one"] == ("model.onnx",)
    packed = folder.parent / "m.tgz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(folder / "serve.py", "serve.py")
    view = client.endpoints.deploy("two", packed)
    assert (shown.endpoints.files["two"], view.versions[0].source) == (("serve.py",), "m.tgz")


def test_a_job_is_deployed(client: Client) -> None:
    request = DeployRequest.model_validate({"job": "job-1", "kernel_max": 2})
    assert client.endpoints.deploy("digits", request=request).versions[0].source == "job-1"
    with pytest.raises(TypeError, match="not both"):
        client.endpoints.deploy("digits", request=request, kernel_max=3)


def test_all_that_is_wrong_is_said_before_anything_is_sent(client: Client, folder: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.endpoints.deploy("digits", folder, kernel_mx=3, batch_size=0)
    assert {problem.field for problem in caught.value.problems} == {"kernel_mx", "batch_size"}
    assert "is 'kernel_max' meant?" in str(caught.value)
    with pytest.raises(InvalidInput, match="neither a folder nor a file"):
        client.endpoints.deploy("digits", folder / "nothing")


def test_waiting_ends_when_the_version_is_loaded_has_failed_or_was_stopped(
    client: Client, shown: Played, folder: Path
) -> None:
    endpoints = client.endpoints
    endpoints.deploy("digits", folder)
    with pytest.raises(TimeoutError, match="the newest version of digits has not got its traffic"):
        endpoints.wait("digits", timeout_s=0.0)
    looks = []
    shown.endpoints.load_after_looks = 3
    view = endpoints.wait("digits", timeout_s=30.0, poll_s=0.0, on_poll=lambda view: looks.append(view.state))
    shown.endpoints.load_after_looks = None
    assert (view.current, looks) == (1, ["starting", "starting", "idle"])
    endpoints.deploy("digits", folder)
    shown.endpoints.fail("digits", "ImportError: no module 'x'")
    assert endpoints.wait("digits").versions[-1].reason == "ImportError: no module 'x'"
    endpoints.deploy("digits", folder)
    endpoints.stop("digits")
    assert endpoints.wait("digits").state == "stopped"


def test_an_endpoint_is_changed_stopped_started_rolled_back_and_removed(
    client: Client, shown: Played, folder: Path
) -> None:
    endpoints = client.endpoints
    for _ in range(2):
        endpoints.deploy("digits", folder)
        shown.endpoints.load("digits")
    before = endpoints.get("digits").revision
    assert endpoints.change("digits", kernel_max=3, revision=before).kernel_max == 3
    patch = EndpointPatch.model_validate({"kernel_max": 4})
    with pytest.raises(Stale):
        endpoints.change("digits", patch, revision=before)
    assert endpoints.change("digits", patch).kernel_max == 4
    assert endpoints.change("digits", max_rate=5, max_concurrent=2).max_rate == 5.0
    limited = endpoints.change("digits", max_rate=None)
    assert (limited.max_rate, limited.max_concurrent) == (None, 2)
    with pytest.raises(InvalidInput, match="nothing to change"):
        endpoints.change("digits")
    assert endpoints.stop("digits").state == "stopped"
    assert endpoints.start("digits").state == "idle"
    assert endpoints.rollback("digits").current == 1
    assert endpoints.rollback("digits", 2).current == 2
    split = endpoints.split("digits", {1: 90, 2: 10})
    assert (split.current, [one.traffic for one in split.versions]) == (1, [90, 10])
    with pytest.raises(InvalidInput, match="90 is 90 percent"):
        endpoints.split("digits", {1: 90})
    endpoints.remove("digits")
    with pytest.raises(NotFound):
        endpoints.get("digits")


def test_a_model_is_asked_with_arrays_and_lists(client: Client, shown: Played, folder: Path, gateway: Gateway) -> None:
    client.endpoints.deploy("digits", folder)
    shown.endpoints.load("digits", {"inputs": [{"name": "x", "datatype": "INT32", "shape": [-1]}, "junk"]})
    outputs = client.endpoints.predict("digits", {"x": [1, 2], "name": ["ada"]})
    assert outputs["x"].tolist() == [2, 4]
    assert outputs["x"].dtype == np.int32
    assert outputs["name"].tolist() == [b"ada"]
    again = client.endpoints.predict("digits", {"x": np.ones((2, 2), dtype=np.float32)}, version=1)
    assert again["x"].tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert gateway.paths == ["/v2/models/digits/infer", "/v2/models/digits/versions/1/infer"]


def test_a_model_is_asked_with_json(client: Client, folder: Path, gateway: Gateway) -> None:
    client.endpoints.deploy("digits", folder)
    document = {"inputs": [{"name": "x", "shape": [2], "datatype": "INT64", "data": [1, 2]}]}
    assert client.endpoints.infer("digits", document)["outputs"][0]["data"] == [2, 4]
    assert client.endpoints.predict("digits", {"pixels": [0, 1]}, raw=True) == {"pixels": [0, 1]}
    assert gateway.paths == ["/v2/models/digits/infer", "/dlim/v1/inference/digits"]
    with pytest.raises(InvalidInput, match="version"):
        client.endpoints.predict("digits", {}, raw=True, version=1)


def test_the_parts_of_an_answer_come_one_after_the_other(client: Client, folder: Path, gateway: Gateway) -> None:
    client.endpoints.deploy("digits", folder)
    parts = client.endpoints.stream("digits", {"x": [1, 2, 3]})
    assert [part["x"].tolist() for part in parts] == [[2], [4], [6]]
    assert gateway.requests[0]["parameters"] == {"binary_data_output": False}
    document = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [4]}]}
    (part,) = client.endpoints.infer_stream("digits", document, version=1)
    assert part["outputs"][0]["data"] == [8]
    assert list(client.endpoints.stream("digits", ["ä", {"error": 1, "y": 2}], raw=True)) == ["ä", {"error": 1, "y": 2}]
    paths = ["/v2/models/digits/infer", "/v2/models/digits/versions/1/infer", "/dlim/v1/inference/digits"]
    assert gateway.paths == paths


def test_a_model_that_fails_after_some_parts_is_an_error_after_these(
    client: Client, folder: Path, gateway: Gateway
) -> None:
    client.endpoints.deploy("digits", folder)
    parts = client.endpoints.stream("digits", [1, {"error": "too hot"}], raw=True)
    assert next(parts) == 1
    with pytest.raises(InternalError, match="too hot; `pliant endpoints logs digits`"):
        next(parts)
    gateway.refusal = (429, "the reason")
    with pytest.raises(TooMany, match="the reason"):
        next(client.endpoints.stream("digits", {"x": [1]}))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInput),
        (403, Forbidden),
        (404, NotFound),
        (408, Unavailable),
        (413, TooLarge),
        (429, TooMany),
        (500, InternalError),
        (502, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_what_a_gateway_refuses_is_an_error_in_its_words(
    client: Client, folder: Path, gateway: Gateway, status: int, error: type[PliantError]
) -> None:
    client.endpoints.deploy("digits", folder)
    gateway.refusal = (status, "the reason")
    with pytest.raises(error, match="the reason") as caught:
        client.endpoints.predict("digits", {"x": [1]})
    if isinstance(caught.value, TooMany):
        assert caught.value.wait_s == 7.0
    if isinstance(caught.value, InternalError) and not isinstance(caught.value, Unavailable):
        assert "`pliant endpoints logs digits`" in str(caught.value)


def test_a_gateway_that_has_gone_elsewhere_is_found_again(
    client: Client, shown: Played, folder: Path, gateway: Gateway
) -> None:
    client.endpoints.deploy("digits", folder)
    with tiny_gateway(shown.token) as before:
        shown.endpoints.http_url = before.url
        client.endpoints.predict("digits", {"x": [1]})
    shown.endpoints.http_url = gateway.url
    with pytest.raises(Unavailable):
        client.endpoints.predict("digits", {"x": [1]})
    assert client.endpoints.predict("digits", {"x": [1]})["x"].tolist() == [2]


def test_when_a_gateway_does_not_answer_another_one_is_asked_also_while_the_server_is_away(
    client: Client, shown: Played, folder: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.endpoints.deploy("digits", folder)
    with tiny_gateway(shown.token) as before:
        shown.endpoints.http_url, shown.endpoints.other_url = before.url, gateway.url
        client.endpoints.predict("digits", {"x": [1]})

    def away(name: str) -> EndpointAddress:
        raise Unavailable(f"no server says where {name} is")

    monkeypatch.setattr(client.endpoints, "address", away)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
        client.endpoints.predict("digits", {"x": [1]})
    assert client.endpoints.predict("digits", {"x": [1]})["x"].tolist() == [2]
    shown.endpoints.other_url = None


def test_without_a_gateway_there_is_nobody_to_ask(client: Client, folder: Path) -> None:
    client.endpoints.deploy("digits", folder)
    with pytest.raises(Unavailable, match="no gateway runs"):
        client.endpoints.predict("digits", {"x": [1]})


def test_no_token_passes_in_the_clear_where_it_did_not_before() -> None:
    with Client("https://pliant.example.org", "t") as client:
        assert client._connection.beside("http://127.0.0.1:7312").url == "http://127.0.0.1:7312"
        with pytest.raises(InvalidInput, match="does not begin with https"):
            client._connection.beside("http://pliant.example.org:7312")
