"""Python classes with `predict`: what they are given, what they may return, and what is wrong with them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.runner.calls import answer_of, call
from tests.serve.runner.folders import deployed, own_process_state
from tests.serve.runner.served import Batch, a_request

from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.python_class import load
from pliant.serve.runner.request import KernelResult

TENSOR = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}


@pytest.fixture(autouse=True)
def _own_process_state() -> Iterator[None]:
    with own_process_state():
        yield


def answers(folder: Path, text: str, *bodies: Any, api: str = "dlim", **more: Any) -> list[KernelResult]:
    """Return the answers of a class to a batch."""
    model = load(deployed(folder, "serve.py", text))
    requests = [
        a_request(number, one if isinstance(one, bytes) else json.dumps(one).encode(), api=api, **more)
        for number, one in enumerate(bodies)
    ]
    batch = Batch.of(*requests)
    model.serve(batch)
    return [batch.answered[request.id] for request in requests]


def predicting(expression: str, more: str = "") -> str:
    return f"import numpy as np\nclass Mine:\n    {more}\n    def predict(self, batch):\n        return {expression}\n"


def said(result: KernelResult) -> Any:
    return json.loads(result.body)


def test_class_is_loaded_and_given_the_json_of_a_batch(tmp_path: Path) -> None:
    text = (
        "class Mine:\n    def load(self): self.n = 10\n    def predict(self, batch): return [self.n + x for x in batch]"
    )

    assert [said(one) for one in answers(tmp_path, text, 1, 2)] == [11, 12]


def test_v2_request_is_a_dict_of_arrays(tmp_path: Path) -> None:
    text = predicting("[{'y': one['x'] * 2, 'shape': np.array(one['x'].shape)} for one in batch]")

    (one, _) = answers(tmp_path, text, {"id": "7", "inputs": [TENSOR]}, {"inputs": [TENSOR]}, api="v2")

    assert said(one) == {
        "model_name": "digits",
        "model_version": "3",
        "id": "7",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [2], "data": [2.0, 4.0]},
            {"name": "shape", "datatype": "INT64", "shape": [1], "data": [2]},
        ],
    }


@pytest.mark.parametrize(
    ("output", "datatype", "data"),
    [
        ("np.float32(1.5)", "FP32", [1.5]),
        ("[1, 2]", "INT64", [1, 2]),
        ("['a', 'ü']", "BYTES", ["a", "ü"]),
        ("True", "BOOL", [True]),
    ],
)
def test_v2_output_may_be_plain(tmp_path: Path, output: str, datatype: str, data: list[Any]) -> None:
    (one,) = answers(tmp_path, predicting(f"[{output}]"), {"inputs": [TENSOR]}, api="v2")

    (tensor,) = said(one)["outputs"]
    assert (tensor["name"], tensor["datatype"], tensor["data"]) == ("output", datatype, data)


def test_raw_class_is_given_the_json_of_a_v2_request(tmp_path: Path) -> None:
    text = predicting("[{'outputs': one['inputs']} for one in batch]", "raw = True")

    (one,) = answers(tmp_path, text, {"id": "7", "inputs": [TENSOR]}, api="v2")

    assert said(one) == {"model_name": "digits", "model_version": "3", "id": "7", "outputs": [TENSOR]}


def test_raw_class_may_return_arrays_too(tmp_path: Path) -> None:
    (one,) = answers(tmp_path, predicting("[np.ones(1)]", "raw = True"), {"inputs": [TENSOR]}, api="v2")

    assert said(one)["outputs"] == [{"name": "output", "datatype": "FP64", "shape": [1], "data": [1.0]}]


def test_output_of_numpy_is_json_over_ibms_route(tmp_path: Path) -> None:
    text = predicting("[{'a': np.ones(2), 'b': np.int32(3), 'c': b'x'}]")

    assert said(answers(tmp_path, text, 1)[0]) == {"a": [1.0, 1.0], "b": 3, "c": "x"}


def test_bytes_are_an_answer_as_they_are(tmp_path: Path) -> None:
    (one,) = answers(tmp_path, predicting(r"[b'\xff']"), 1)

    assert (one.body, one.type) == (b"\xff", "application/octet-stream")


@pytest.mark.parametrize(
    "text",
    [predicting("[{'x': one['x'] + 1} for one in batch]"), predicting("[{'x': [8]} for _ in batch]", "raw = True")],
)
def test_call_over_grpc_is_a_dict_of_arrays_too(tmp_path: Path, text: str) -> None:
    good, bad = answers(tmp_path, text, call([7]), b"\xff\xff", api="grpc")

    assert answer_of(good.body) == {"x": [8]}
    assert bad.status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
@pytest.mark.parametrize("api", ["dlim", "v2"])
def test_body_that_is_no_json_is_refused_and_the_others_are_answered(tmp_path: Path, body: bytes, api: str) -> None:
    good = {"inputs": [TENSOR]}

    bad, fine = answers(tmp_path, predicting("[1 for _ in batch]"), body, good, api=api)

    assert (bad.status, fine.status) == (400, 200)


@pytest.mark.parametrize(("depth", "status"), [(64, 200), (65, 400), (100_000, 400)])
def test_json_is_only_so_deep_whatever_a_model_has_set(tmp_path: Path, depth: int, status: int) -> None:
    text = f"import sys\nsys.setrecursionlimit(10 ** 6)\n{predicting('[1 for _ in batch]')}"
    before = sys.getrecursionlimit()
    try:
        (one,) = answers(tmp_path, text, b"[" * depth + b"]" * depth)
    finally:
        sys.setrecursionlimit(before)

    assert one.status == status
    assert status == 200 or f"nested {depth} levels deep; at most 64" in said(one)["error"]


def test_unknown_api_is_refused(tmp_path: Path) -> None:
    (one,) = answers(tmp_path, predicting("[1 for _ in batch]"), 1, api="morse")

    assert (one.status, "does not speak morse" in said(one)["error"]) == (400, True)


def test_value_error_is_the_callers(tmp_path: Path) -> None:
    text = """
class Mine:
    def predict(self, batch):
        if 0 in batch:
            raise ValueError("0 is too small")
        return batch
"""

    results = answers(tmp_path, text, 1, 0, 2)

    assert [(one.status, said(one)) for one in results] == [(200, 1), (400, {"error": "0 is too small"}), (200, 2)]


def test_one_request_does_not_spoil_the_others(tmp_path: Path) -> None:
    results = answers(tmp_path, predicting("[1 / one for one in batch]"), 1, 0, 2)

    assert [one.status for one in results] == [200, 500, 200]
    assert said(results[1]) == {"error": "ZeroDivisionError: division by zero"}


def test_failure_for_all_is_an_error_of_the_kernel(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        answers(tmp_path, predicting("[1 / 0 for one in batch]"), 1, 2)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("[1]", "predict returned 1 outputs for 2 inputs; return one for each"),
        ("None", "predict returned NoneType; return a list"),
        ("{'a': 1, 'b': 2}", "predict returned dict; return a list"),
        ("(x for x in batch)", "predict returned generator; return a list"),
    ],
)
def test_wrong_number_of_outputs_is_an_error_of_the_kernel(tmp_path: Path, output: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        answers(tmp_path, predicting(output), 1, 2)


@pytest.mark.parametrize("value", ["float('nan')", "np.array([1, np.inf])"])
def test_nan_is_refused_in_json(tmp_path: Path, value: str) -> None:
    good, bad = answers(tmp_path, predicting(f"[1, {value}]"), 1, 2)
    by_v2 = answers(tmp_path, predicting(f"[{value}]"), {"inputs": [TENSOR]}, api="v2")[0]

    assert good.status == 200
    assert (bad.status, "NaN or an infinity" in said(bad)["error"]) == (500, True)
    assert (by_v2.status, "binary_data" in said(by_v2)["error"]) == (400, True)


@pytest.mark.parametrize("value", ["object()", "[[1], [2, 3]]", "{1: 2}", "None", "1j"])
def test_output_that_is_no_tensor_is_an_error(tmp_path: Path, value: str) -> None:
    (one,) = answers(tmp_path, predicting(f"[{value}]"), {"inputs": [TENSOR]}, api="v2")

    assert one.status == 500


def test_attributes_are_the_metadata(tmp_path: Path) -> None:
    more = "inputs = [{'name': 'x', 'datatype': 'FP32', 'shape': [-1, 2]}]; max_batch_size = 4; platform = 'mine'"

    metadata = load(deployed(tmp_path, "serve.py", predicting("batch", more))).metadata

    assert metadata.to_json() == {
        "platform": "mine",
        "inputs": ({"name": "x", "datatype": "FP32", "shape": (-1, 2)},),
        "outputs": (),
        "max_batch_size": 4,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "serve.py has no public class with `predict` or `stream`; define one"),
        ("class _Hidden:\n    def predict(self, batch): ...", "has no public class"),
        (
            "class A:\n    def predict(s, b): ...\nclass B(A): ...",
            "several classes that serve: A, B; call one of them",
        ),
        (predicting("batch", "inputs = 3"), "`inputs` is 3; make it a list"),
        (predicting("batch", "outputs = [{'name': 'x'}]"), "`outputs` holds {'name': 'x'}"),
        (predicting("batch", "inputs = [{'name': 'x', 'datatype': 'F', 'shape': []}]"), "datatype one of"),
        (predicting("batch", "inputs = [{'name': 'x', 'datatype': 'BOOL', 'shape': [-2]}]"), "the shape .-2."),
        (predicting("batch", "max_batch_size = 0"), "`max_batch_size` is 0; give a whole number above 0"),
    ],
)
def test_what_is_no_model_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ModelNotLoaded, match=message):
        load(deployed(tmp_path, "serve.py", text))


def test_class_called_model_is_preferred(tmp_path: Path) -> None:
    text = "class A:\n    def predict(s, b): return [1]\nclass Model:\n    def predict(s, b): return [2]"

    assert said(answers(tmp_path, text, 0)[0]) == 2


def test_file_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")

    with pytest.raises(ModelNotLoaded, match=r"serve\.py is not in the model's folder, which holds other\.py"):
        load(deployed(tmp_path, "serve.py"))
