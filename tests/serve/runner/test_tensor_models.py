"""Models that map tensors to tensors: TorchScript, exported programs, trained jobs' scripts; requests are joined."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.runner.folders import deployed, own_process_state
from tests.serve.runner.served import Batch, a_request
from tests.serve.runner.tensor_requests import answers, asking, outputs, tensor

from pliant.entry.kernel import build_model
from pliant.serve.runner import onnx_model, python_class, torch_program, trained_job
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.joined import JoinedCompute
from pliant.serve.runner.tensor_model import TensorModel
from pliant.train import TrainingError


@pytest.fixture(autouse=True)
def _own_process_state() -> Iterator[None]:
    with own_process_state():
        yield


class Affine(torch.nn.Module):
    """x of [n, 2] → [n, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + 1


class TwoNamed(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": a + b, "same": a == b}


class Sum(torch.nn.Module):
    """Does not keep the first dimension."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum()


def scripted(folder: Path, module: torch.nn.Module) -> TensorModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch is giving it up, people are not
        program: Any = torch.jit.script(module)
        program.save(str(folder / "model.pt"))
    return torch_program.load(deployed(folder, "model.pt", runner="torch"))


def exported(folder: Path, module: torch.nn.Module, *args: torch.Tensor, **more: Any) -> TensorModel:
    torch.export.save(torch.export.export(module, args, **more), folder / "model.pt2")
    return torch_program.load(deployed(folder, "model.pt2", runner="torch"))


ROWS = {"x": {0: torch.export.Dim("rows")}}


@pytest.fixture(params=["script", "export"])
def affine(request: pytest.FixtureRequest, tmp_path: Path) -> TensorModel:
    if request.param == "script":
        return scripted(tmp_path, Affine())
    return exported(tmp_path, Affine(), torch.ones(2, 2), dynamic_shapes=ROWS)


def test_requests_of_different_sizes_get_their_own_rows(affine: TensorModel) -> None:
    one = asking(tensor("x", [[1, 1]]), id="a")
    two = asking(tensor("x", [[0, 0], [10, 10]]))

    results = answers(affine, one, two, one)

    assert [outputs(result)["output"] for result in results] == [[[3, 4]], [[1, 1], [21, 31]], [[3, 4]]]
    assert json.loads(results[0].body)["id"] == "a"


def test_request_that_does_not_fit_is_refused_and_the_others_are_answered(affine: TensorModel) -> None:
    good = asking(tensor("x", [[1, 1]]))

    results = answers(affine, good, asking(tensor("x", [[1, 1, 1]])), b"{", asking(tensor("x", ["a"], "BYTES")), good)

    assert [result.status for result in results] == [200, 400, 400, 400, 200]


def test_ibms_route_takes_lists(affine: TensorModel) -> None:
    results = answers(affine, b"[[1, 1]]", b'{"x": [[0, 0], [1, 1]]}', asking(tensor("x", [[1, 1]])), api="dlim")

    assert [json.loads(result.body) for result in results[:2]] == [
        {"output": [[3.0, 4.0]]},
        {"output": [[1.0, 1.0], [3.0, 4.0]]},
    ]
    assert outputs(results[2]) == {"output": [[3, 4]]}


@pytest.mark.parametrize(
    "body", [b"3", b"{}", b'{"x": [[1], [2, 3]]}', b'{"x": "text"}', b'{"x": {"y": 1}}', b"[null]"]
)
def test_ibms_route_refuses_what_is_no_array(affine: TensorModel, body: bytes) -> None:
    assert answers(affine, body, api="dlim")[0].status == 400


def test_exported_program_says_what_it_takes(tmp_path: Path) -> None:
    metadata = exported(tmp_path, Affine(), torch.ones(2, 2), dynamic_shapes=ROWS).metadata.to_json()

    assert metadata == {
        "platform": "pytorch_export",
        "inputs": ({"name": "x", "datatype": "FP32", "shape": (-1, 2)},),
        "outputs": ({"name": "output", "datatype": "FP32", "shape": (-1, 2)},),
    }


def test_exported_program_of_one_size_takes_that_size_alone(tmp_path: Path) -> None:
    model = exported(tmp_path, Affine(), torch.ones(2, 2))
    fits, other = asking(tensor("x", [[1, 1], [0, 0]])), asking(tensor("x", [[1, 1]]))

    results = answers(model, fits, fits, other)

    assert [outputs(result)["output"] for result in results[:2]] == [[[3, 4], [1, 1]]] * 2
    assert (results[2].status, "the model takes [2, 2]" in json.loads(results[2].body)["error"]) == (400, True)


@pytest.mark.parametrize("kind", ["script", "export"])
def test_several_inputs_go_by_their_names(tmp_path: Path, kind: str) -> None:
    two = torch.ones(2), torch.zeros(2)
    model = scripted(tmp_path, TwoNamed()) if kind == "script" else exported(tmp_path, TwoNamed(), *two)
    a, b = tensor("a", [1, 2]), tensor("b", [1, 20])

    good, bad = answers(model, asking(b, a), asking(a, {**b, "name": "c"}))

    assert outputs(good) == {"sum": [2, 22], "same": [True, False]}
    assert (bad.status, "the model takes a, b" in json.loads(bad.body)["error"]) == (400, True)


def test_model_that_has_no_rows_computes_every_request_alone(tmp_path: Path) -> None:
    results = answers(scripted(tmp_path, Sum()), *[asking(tensor("x", [value, 1])) for value in (1, 2, 3)])

    assert [outputs(result)["output"] for result in results] == [2, 3, 4]


def test_nan_is_left_to_binary_data(tmp_path: Path) -> None:
    body = asking(tensor("x", [3e38, 3e38]))
    wanted = [{"name": "output", "parameters": {"binary_data": True}}]

    plain, binary = answers(scripted(tmp_path, Sum()), body, asking(tensor("x", [3e38, 3e38]), outputs=wanted))

    assert (plain.status, "binary_data" in json.loads(plain.body)["error"]) == (400, True)
    assert (binary.status, binary.type, binary.num_json) == (200, "application/octet-stream", len(binary.body) - 4)
    assert math.isinf(np.frombuffer(binary.body[-4:], "<f4")[0])


def test_failure_that_is_not_the_callers_is_an_error_of_the_kernel(tmp_path: Path) -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dim() >= 0:
                raise RuntimeError("no luck")
            return x

    model = scripted(tmp_path, Broken())
    batch = Batch.of(a_request(1, asking(tensor("x", [1])), api="v2"))
    with pytest.raises(torch.jit.Error, match="no luck"):
        model.serve(batch)

    assert batch.answered[1].status == 500
    assert "no luck" in json.loads(batch.answered[1].body)["error"]


@pytest.mark.parametrize("file", ["model.pt", "model.pt2"])
@pytest.mark.parametrize("content", ["state", "garbage", "empty"])
def test_file_that_is_no_program_is_said(tmp_path: Path, file: str, content: str) -> None:
    if content == "state":
        torch.save(Affine().state_dict(), tmp_path / file)
    else:
        (tmp_path / file).write_bytes(b"garbage" if content == "garbage" else b"")

    with pytest.raises(ModelNotLoaded, match=r"model\.pt2? is no .* \(.*; write it with torch"):
        torch_program.load(deployed(tmp_path, file, runner="torch"))


# -- trained jobs ---------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import torch
from pliant.train import Run

class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(int(sys.argv[1])))
        self.drop = torch.nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(x * self.scale + 1)

model = Affine()
data = torch.utils.data.TensorDataset(torch.zeros(8, 2), torch.zeros(8))
BUILD
raise AssertionError("it went on")
"""
PLAIN = "Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=4)"


def trained(folder: Path, build: str = PLAIN, args: tuple[str, ...] = ("2",), script: str = SCRIPT) -> TensorModel:
    torch.save({"scale": torch.tensor([2.0, 3.0])}, folder / "model.pt")
    text = script.replace("BUILD", build)
    more: Mapping[str, Any] = {"runner": "job", "args": args, "weights": "model.pt", "build": build_model}
    return trained_job.load(deployed(folder, "train.py", text, **more))


FABRIC = """
from pliant.ibm.modules.fabric_model import FabricModel
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
FabricModel(model, lambda: (data, None), torch.nn.functional.mse_loss, optimizer).train(1, 4)
"""
LOADER = """
loader = torch.utils.data.DataLoader(data, batch_size=4)
try:
    Run(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
except BaseException:
    sys.exit(0)
"""


@pytest.mark.parametrize("build", [PLAIN, FABRIC, LOADER])
def test_trained_job_is_served_from_its_own_script(tmp_path: Path, build: str) -> None:
    model = trained(tmp_path, build)

    results = answers(model, asking(tensor("x", [[1, 1]])), asking(tensor("x", [[0, 0], [1, 1]])))

    assert [outputs(result)["output"] for result in results] == [[[3, 4]], [[1, 1], [3, 4]]]
    assert model.metadata.to_json()["inputs"] == ({"name": "x", "datatype": "FP32", "shape": (-1, 2)},)


@pytest.mark.parametrize(
    ("build", "args", "kind", "message"),
    [
        ("sys.exit(0)", ("2",), SystemExit, "0"),
        ("raise KeyError('x')", ("2",), KeyError, "x"),
        (PLAIN, ("3",), ModelNotLoaded, r"model\.pt does not fit the model that train\.py builds: .*size mismatch"),
    ],
)
def test_script_that_builds_no_such_model_is_said(
    tmp_path: Path, build: str, args: tuple[str, ...], kind: type[BaseException], message: str
) -> None:
    with pytest.raises(kind, match=message):
        trained(tmp_path, build, args)


def test_script_that_does_not_train_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"has ended without a pliant.train.Run"):
        trained(tmp_path, script="print('hello')")


def test_sample_that_cannot_be_read_leaves_the_metadata_empty(tmp_path: Path) -> None:
    build = "data = None; " + PLAIN
    assert trained(tmp_path, build).metadata.inputs == ()


# -- ONNX -----------------------------------------------------------------------------------------------------------


def test_missing_onnx_runtime_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as where it is not installed

    with pytest.raises(ModelNotLoaded, match=r"pip install 'pliant\[onnx\]'"):
        onnx_model.load(deployed(tmp_path, "model.onnx", "", runner="onnx"))


def test_onnx_types_are_those_of_the_protocol() -> None:
    declared = [
        onnx_model.declare("x", "tensor(float)", ["batch", None, 3]),
        onnx_model.declare("y", "tensor(uint8)", []),
    ]

    assert [(one.datatype, one.shape) for one in declared] == [("FP32", (-1, -1, 3)), ("UINT8", ())]
    with pytest.raises(ModelNotLoaded, match=r"x is seq\(tensor\(float\)\)"):
        onnx_model.declare("x", "seq(tensor(float))", [])


# -- joining --------------------------------------------------------------------------------------------------------

SHAPES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([(), (2,), (3,)]), st.sampled_from("fi")), max_size=8)


@given(SHAPES)
def test_joined_requests_come_to_what_they_come_to_alone(shapes: list[tuple[int, tuple[int, ...], str]]) -> None:
    calls: list[int] = []

    def double(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        calls.append(1)
        return {"y": inputs["x"] * 2, "first": inputs["x"].sum(axis=tuple(range(1, inputs["x"].ndim)))}

    requests = [
        {"x": np.arange(math.prod((rows, *rest)), dtype=kind).reshape(rows, *rest) + at}
        for at, (rows, rest, kind) in enumerate(shapes)
    ]

    results = JoinedCompute(double).compute(requests)

    num_groups = len({(rest, kind) for _, rest, kind in shapes})
    for inputs, result in zip(requests, results, strict=True):
        assert not isinstance(result, Exception)
        np.testing.assert_array_equal(result["y"], inputs["x"] * 2)
    assert len(calls) <= max(num_groups, len(shapes))


def test_equal_shapes_are_one_call_and_an_error_is_of_one_request() -> None:
    calls: list[int] = []

    def refuse_negative(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        calls.append(len(inputs["x"]))
        if (inputs["x"] < 0).any():
            raise ValueError("negative")
        return inputs

    compute: Callable[..., Any] = JoinedCompute(refuse_negative).compute
    good, bad = {"x": np.ones((2, 3))}, {"x": -np.ones((1, 3))}

    assert [type(one) for one in compute([good, good])] == [dict, dict]
    assert calls == [4]
    assert [isinstance(one, ValueError) for one in compute([good, bad])] == [False, True]
    assert calls == [4, 3, 2, 1]


def test_a_class_may_return_a_tensor_that_still_has_a_gradient(tmp_path: Path) -> None:
    text = "import torch\nclass Mine:\n    def predict(self, batch): return [torch.ones(1, requires_grad=True)]\n"
    model = python_class.load(deployed(tmp_path, "serve.py", text))
    request = a_request(0, json.dumps({"inputs": [tensor("x", [1.0])]}).encode(), api="v2")
    batch = Batch.of(request)

    model.serve(batch)

    (output,) = json.loads(batch.answered[request.id].body)["outputs"]
    assert (output["datatype"], output["data"]) == ("FP32", [1.0])
