"""IBM's kernel scripts: the ways in which they are written, and what is wrong with them."""

import json
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.serve.runner.calls import answer_of, call
from tests.serve.runner.fake_gateway import FakeGateway
from tests.serve.runner.folders import deployed, own_process_state
from tests.serve.runner.served import served

from pliant.ibm import modules
from pliant.ibm.modules.redhareapi import Kernel
from pliant.serve.protocol.frames import KernelFrameKind
from pliant.serve.runner import redhare
from pliant.serve.runner.errors import KernelBroken, ModelNotLoaded

HEAD = "import json, os\nfrom pathlib import Path\nimport redhareapiversion\nfrom redhareapi import Kernel\n\n"
ONE_BY_ONE = """
class Echo(Kernel):
    def on_task_invoke(self, task_context):
        while task_context != None:
            value = json.loads(task_context.get_input_data())
            task_context.set_output_data(json.dumps({"data": value["data"]}))
            task_context = task_context.next()
"""
COLLECT = """
class Collect(Kernel):
    def on_task_invoke(self, task_context):
        kept = []
        while task_context is not None:
            kept.append(task_context)
            task_context = task_context.next()
        total = sum(json.loads(one.get_input_data()) for one in kept)
        for one in kept:
            one.set_output_data(str(total))
"""
CARELESS = """
class Careless(Kernel):
    def on_task_invoke(self, task_context):
        try:
            while task_context is not None:
                task_context.set_output_data("1")
                task_context = task_context.next()
            raise ValueError("afterwards")
        except Exception as error:
            task_context.set_output_data(str(error))
"""


def kernel(body: str) -> str:
    """Return a kernel whose `on_task_invoke` is this."""
    lines = "\n".join("        " + line for line in body.splitlines())
    return f"class Mine(Kernel):\n    def on_task_invoke(self, task):\n{lines}\n"


@contextmanager
def playing(folder: Path, text: str, *, run: bool = True, **settings: Any) -> Iterator[Any]:
    """Serve a kernel's script in a thread, with IBM's modules on the path as in every task."""
    name = text.rpartition("class ")[2].partition("(")[0]
    script = HEAD + text + (f"\n{name}().run()\n" if run else "")
    model = deployed(folder, "kernel.py", script, runner="redhare")
    with own_process_state():
        sys.path.insert(0, str(Path(modules.__file__).parent))
        with served(lambda session: redhare.serve(session, model), **settings) as found:
            yield found


@contextmanager
def gateway_of(folder: Path, text: str, **settings: Any) -> Iterator[FakeGateway]:
    with playing(folder, text, **settings) as found:
        found.gateway.ready()
        yield found.gateway
    if found.error is not None:
        raise found.error


def error_of(body: bytes) -> str:
    return str(json.loads(body)["error"])


def test_kernel_that_takes_tasks_one_by_one_answers_each_at_once(tmp_path: Path) -> None:
    with gateway_of(tmp_path, ONE_BY_ONE) as gateway:
        heard = gateway.exchange('{"data": 1}', '{"data": "x"}', '{"data": null}')

    assert [json.loads(one.body) for one in heard] == [{"data": 1}, {"data": "x"}, {"data": None}]
    assert {one.header["type"] for one in heard} == {"application/json"}
    assert [one.header["batch"] for one in heard] == [1, 1, 1]


def test_first_answer_does_not_wait_for_the_second_task(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    body = f"""task.set_output_data("1")
task = task.next()
Path({str(go_on)!r}).read_text()
task.set_output_data("2")"""

    with gateway_of(tmp_path, kernel(body)) as gateway:
        first, second = gateway.ask("a", "b")
        (early,) = gateway.answers(first)
        go_on.write_text("now")
        (late,) = gateway.answers(second)

    assert (early.body, late.body) == (b"1", b"2")


def test_kernel_that_collects_tasks_has_a_batch(tmp_path: Path) -> None:
    with gateway_of(tmp_path, COLLECT) as gateway:
        heard = gateway.exchange("1", "20", "300") + gateway.exchange("4")

    assert [one.body for one in heard] == [b"321"] * 3 + [b"4"]
    assert [one.header.get("batch") for one in heard] == [3, None, None, 1]


def test_careless_handler_does_not_end_the_kernel(tmp_path: Path) -> None:
    with gateway_of(tmp_path, CARELESS) as gateway:
        heard = [gateway.exchange("x", "y") for _ in range(4)]

    assert [(one.status, one.body) for pair in heard for one in pair] == [(200, b"1")] * 8


def test_kernel_that_fails_says_why_and_ends_after_three_times(tmp_path: Path) -> None:
    with playing(tmp_path, kernel("raise ValueError('bad weights')")) as found:
        found.gateway.ready()
        heard = [found.gateway.exchange("x") for _ in range(3)]
        found.gateway.expect(KernelFrameKind.DRAIN)

    assert {(one.status, error_of(one.body)) for pair in heard for one in pair} == {(500, "ValueError: bad weights")}
    assert isinstance(found.error, KernelBroken)


def test_outputs_that_were_set_before_an_error_are_sent(tmp_path: Path) -> None:
    with gateway_of(tmp_path, kernel("task.set_output_data('1')\nother = task.next()\nraise KeyError(2)")) as gateway:
        heard = gateway.exchange("a", "b")

    assert [one.status for one in heard] == [200, 500]


def test_task_without_output_gets_an_error(tmp_path: Path) -> None:
    with gateway_of(tmp_path, kernel("task.next()")) as gateway:
        heard = gateway.exchange("a", "b")

    assert {(one.status, error_of(one.body)) for one in heard} == {(500, "the kernel returned no output")}


def test_last_output_counts_until_it_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = """task.set_output_data("1")
task.set_output_data("2")
task.report_ready()
task.set_output_data("3")"""

    with gateway_of(tmp_path, kernel(body)) as gateway:
        (heard,) = gateway.exchange("a")

    assert heard.body == b"2"
    assert "has been answered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "body", "kind"),
    [
        ("'{\"a\": 1}'", b'{"a": 1}', "application/json"),
        ("'plain'", b"plain", "text/plain; charset=utf-8"),
        ("'NaN'", b"NaN", "text/plain; charset=utf-8"),
        ("b'\\xff\\x00'", b"\xff\x00", "application/octet-stream"),
        ("{'a': [1]}", b'{"a": [1]}', "application/json"),
        ("'\\udcff'", b"\\udcff", "text/plain; charset=utf-8"),
        ("None", b"null", "application/json"),
    ],
)
def test_output_is_the_answer_as_it_is(tmp_path: Path, output: str, body: bytes, kind: str) -> None:
    with gateway_of(tmp_path, kernel(f"task.set_output_data({output})")) as gateway:
        (heard,) = gateway.exchange("a")

    assert (heard.status, heard.body, heard.header["type"]) == (200, body, kind)


@pytest.mark.parametrize("output", ["float('nan')", "object()"])
def test_output_that_cannot_be_sent_is_an_error(tmp_path: Path, output: str) -> None:
    with gateway_of(tmp_path, kernel(f"task.set_output_data({output})")) as gateway:
        (heard,) = gateway.exchange("a")

    assert heard.status == 500
    assert "the kernel's output cannot be sent: the model returned" in error_of(heard.body)


def test_tasks_know_who_they_are(tmp_path: Path) -> None:
    body = """import uuid
other = task.next()
assert other.prev() is task and task.prev() is None and task.next() is other and other.next() is None
said = [task.get_id(), task.get_job_id(), task.get_version(), task.get_model_name(), task.get_session_id()]
assert str(uuid.UUID(task.get_uuid())) == task.get_uuid() != other.get_uuid()
task.set_output_data(said)
other.set_output_data(b"head")
other.set_output_data_extend(b"tail")"""

    with gateway_of(tmp_path, kernel(body)) as gateway:
        heard = gateway.exchange("a", "b", params={"session": "s-7"})

    assert json.loads(heard[0].body) == ["1", "job-1", "3", "digits", "s-7"]
    assert (heard[1].body, heard[1].header["json"]) == (b"headtail", 4)


def test_kernel_is_started_with_its_description_and_shut_down(tmp_path: Path) -> None:
    text = """
class Mine(Kernel):
    def on_kernel_start(self, kernel_context):
        self.said = json.loads(kernel_context.get_model_description())
        self.said["ids"] = [kernel_context.get_id(), kernel_context.get_instance_id()]
        self.said["env"] = os.environ["FROM_MODEL_JSON"]
    def on_task_invoke(self, task_context):
        task_context.set_output_data(self.said)
    def on_kernel_shutdown(self):
        open("SHUT", "w").close()
""".replace("SHUT", str(tmp_path / "shut"))
    given: dict[str, Any] = {
        "name": "other",
        "tag": "t",
        "weight_path": "w",
        "mk_environments": [{"name": "FROM_MODEL_JSON", "value": 1}],
    }
    (tmp_path / "model.json").write_text(json.dumps(given))

    with gateway_of(tmp_path, text) as gateway:
        (heard,) = gateway.exchange("a")

    said = json.loads(heard.body)
    assert said == {
        **given,
        "name": "digits",
        "version": 3,
        "kernel_path": "kernel.py",
        "model_path": str(tmp_path),
        "runtime": "",
        "attributes": [],
        "schema_version": "1",
        "ids": ["job-1.1", "job-1"],
        "env": "1",
    }
    assert (tmp_path / "shut").exists()


def test_v2_answer_is_completed(tmp_path: Path) -> None:
    body = "task.set_output_data(json.dumps({'outputs': json.loads(task.get_input_data())['inputs']}))"
    inputs = [{"name": "x", "datatype": "INT64", "shape": [1], "data": [7]}]

    with gateway_of(tmp_path, kernel(body)) as gateway:
        (heard,) = gateway.exchange(json.dumps({"id": "r1", "inputs": inputs}), api="v2")

    assert json.loads(heard.body) == {"model_name": "digits", "model_version": "3", "id": "r1", "outputs": inputs}


def test_v2_request_with_binary_tensors_is_json_to_a_kernel(tmp_path: Path) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"id": "r1", "inputs": [tensor]}).encode()
    body = "task.set_output_data([task.get_input_data(), len(task.get_input_data_extend())])"

    with gateway_of(tmp_path, kernel(body)) as gateway:
        good = gateway.exchange(text + struct.pack("<2f", 1.5, -2.0), api="v2", json=len(text))[0]
        bad = gateway.exchange(text + b"123", api="v2", json=len(text))[0]

    read, num_bytes = json.loads(good.body)
    assert json.loads(read)["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1.5, -2.0]}]
    assert num_bytes == 8
    assert bad.status == 400
    assert "binary_data_size" in error_of(bad.body)


def test_call_over_grpc_is_json_to_a_kernel_and_its_answer_tensors(tmp_path: Path) -> None:
    text = """
class Mine(Kernel):
    def on_task_invoke(self, task):
        inputs = json.loads(task.get_input_data())["inputs"]
        task.set_output_data({"outputs": inputs} if inputs[0]["data"] == [7] else "no tensors")
"""

    with gateway_of(tmp_path, text) as gateway:
        good, bad = gateway.exchange(call([7]), call([8]), api="grpc")

    assert answer_of(good.body) == {"x": [7]}
    assert (bad.status, "over gRPC an answer is tensors" in error_of(bad.body)) == (500, True)


def test_kernel_that_has_to_go_in_a_batch_is_given_no_more(tmp_path: Path) -> None:
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    os.mkfifo(began)
    os.mkfifo(go_on)
    body = f"""Path({str(began)!r}).write_text("x")
Path({str(go_on)!r}).read_text()
task.set_output_data(str(task.next()))"""

    with playing(tmp_path, kernel(body)) as found:
        found.gateway.ready()
        first, second = found.gateway.ask("a", "b")
        began.read_text()
        found.leave.ask()
        go_on.write_text("now")
        frames = [found.gateway.receive() for _ in range(3)]

    kinds = {frame.kind: frame for frame in frames}
    assert kinds[KernelFrameKind.RESULT].header["id"] == first
    assert kinds[KernelFrameKind.RESULT].body == b"None"
    assert kinds[KernelFrameKind.RETURN].header["ids"] == [second]


def test_script_without_a_kernel_is_no_model(tmp_path: Path) -> None:
    with playing(tmp_path, ONE_BY_ONE, run=False) as found:
        found.gateway.expect(KernelFrameKind.HELLO)
        assert found.gateway.is_closed()

    assert isinstance(found.error, ModelNotLoaded)
    assert "end it with YourKernel().run()" in str(found.error)


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000])
def test_bad_description_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.json").write_text(text)

    with playing(tmp_path, ONE_BY_ONE) as found:
        found.gateway.expect(KernelFrameKind.HELLO)
        assert found.gateway.is_closed()

    assert isinstance(found.error, ModelNotLoaded)
    assert str(found.error).startswith("model.json is no JSON")


def test_kernel_outside_an_endpoint_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="deploy its folder"):
        Kernel().run()


def test_log_level_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DLIM_MK_LOG_LEVEL", "WARN")

    for log in (Kernel.log_debug, Kernel.log_info, Kernel.log_warn, Kernel.log_error):
        log(log.__name__)

    said = capsys.readouterr()
    assert [line.partition("] ")[2] for line in said.err.splitlines()] == ["WARN log_warn", "ERROR log_error"]
    assert said.out == ""
