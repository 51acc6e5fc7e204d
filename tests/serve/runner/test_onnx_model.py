"""ONNX models on the real ONNX Runtime: what they take and give, what is refused, and what a file cannot reach."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.runner.folders import deployed
from tests.serve.runner.served import Batch, a_request
from tests.serve.runner.tensor_requests import answers, asking, outputs, tensor

from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message
from pliant.serve.runner import onnx_model
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.tensor_model import TensorModel

pytest.importorskip("onnxruntime", reason="needs ONNX Runtime: pip install onnxruntime onnx")
onnx: Any = pytest.importorskip("onnx", reason="models are made with onnx: pip install onnx")

IR_VERSION = 10
"""Of files that ONNX Runtime 1.24 reads."""
Value = tuple[str, str, Sequence[int | str | None] | None]
"""Of a graph: its name, type and shape; None: not even how many sizes it has."""


def node(operator: str, given: str, made: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, given.split(), made.split(), **attributes)


def graph(nodes: list[Any], inputs: list[Value], outputs: list[Value], weights: Sequence[Any] = ()) -> Any:
    made = onnx.helper.make_graph(nodes, "g", list(map(value, inputs)), list(map(value, outputs)), list(weights))
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = IR_VERSION
    return model


def value(given: Value) -> Any:
    name, kind, shape = given
    return onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape)


def loaded(folder: Path, model: Any, **more: Any) -> TensorModel:
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return onnx_model.load(deployed(folder, "model.onnx", runner="onnx", **more))


def why_not(folder: Path, model: Any = None) -> str:
    """Return why a model does not load; None: what is in the folder."""
    if model is not None:
        (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelNotLoaded) as refused:
        onnx_model.load(deployed(folder, "model.onnx", runner="onnx"))
    assert str(folder) not in str(refused.value), "people are not told where the server keeps it"
    return str(refused.value)


def doubling(kind: str = "FLOAT", shape: Sequence[int | str | None] | None = ("rows", 2)) -> Any:
    return graph([node("Add", "x x", "y")], [("x", kind, shape)], [("y", kind, shape)])


def error(result: Any) -> str:
    return str(json.loads(result.body)["error"])


def test_a_batch_of_any_size_is_computed_and_requests_of_different_sizes_together(tmp_path: Path) -> None:
    rows_and_most = [node("ReduceMax", "x", "most", axes=[0]), node("Add", "x most", "y")]
    model = loaded(tmp_path, graph(rows_and_most, [("x", "FLOAT", ["rows", 2])], [("y", "FLOAT", ["rows", 2])]))

    results = answers(model, asking(tensor("x", [[1, 1]])), asking(tensor("x", [[0, 0], [10, 10]])))

    assert [outputs(one)["y"] for one in results] == [[[11, 11]], [[10, 10], [20, 20]]], "one call had all three rows"
    said = model.metadata.to_json()
    assert said["platform"] == "onnxruntime_onnx"
    assert said["inputs"] == ({"name": "x", "datatype": "FP32", "shape": (-1, 2)},)


def test_several_inputs_and_outputs_are_known_by_their_names(tmp_path: Path) -> None:
    made = graph(
        [node("Add", "a b", "sum"), node("Equal", "a b", "same")],
        [("a", "INT64", ["n"]), ("b", "INT64", ["n"])],
        [("sum", "INT64", ["n"]), ("same", "BOOL", ["n"])],
    )
    model = loaded(tmp_path, made)
    a, b = tensor("a", [1, 2], "INT64"), tensor("b", [3, 2], "INT64")

    both, one = answers(model, asking(b, a), asking(a, b, outputs=[{"name": "same"}]))

    assert outputs(both) == {"sum": [4, 4], "same": [False, True]}
    assert outputs(one) == {"same": [False, True]}
    (plain,) = answers(model, b'{"a": [1], "b": [2]}', api="dlim")
    assert json.loads(plain.body) == {"sum": [3], "same": [False]}


def test_texts_go_in_and_come_out_as_they_are_by_every_protocol(tmp_path: Path) -> None:
    model = loaded(tmp_path, graph([node("Identity", "t", "u")], [("t", "STRING", ["n"])], [("u", "STRING", ["n"])]))

    (said,) = answers(model, asking(tensor("t", ["ä", "", "x\x00y"], "BYTES")))
    (plain,) = answers(model, '{"t": ["ä"]}'.encode(), api="dlim")
    grpc, broken = answers(model, text_call("ä".encode()), text_call(b"\xff\x00"), api="grpc")

    assert outputs(said)["u"] == ["ä", "", "x\x00y"]
    assert json.loads(plain.body) == {"u": ["ä"]}
    assert bytes(decode_message("ModelInferResponse", grpc.body)["raw_output_contents"][0])[4:] == "ä".encode()
    assert (broken.status, "b'\\xff\\x00' is not UTF-8" in error(broken)) == (400, True)


def text_call(element: bytes) -> bytes:
    """Return a call over gRPC with one text."""
    given = {"name": "t", "datatype": "BYTES", "shape": [1]}
    raw = len(element).to_bytes(4, "little") + element
    return encode_message("ModelInferRequest", {"inputs": [given], "raw_input_contents": [raw]})


@pytest.mark.parametrize(
    ("kind", "datatype"),
    [("FLOAT", "FP32"), ("DOUBLE", "FP64"), ("INT32", "INT32"), ("INT64", "INT64")],
)
def test_numbers_keep_their_datatype(tmp_path: Path, kind: str, datatype: str) -> None:
    model = loaded(tmp_path, doubling(kind, ["rows"]))

    (result,) = answers(model, asking(tensor("x", [1, 2], datatype)))

    assert model.metadata.inputs[0].datatype == datatype
    assert json.loads(result.body)["outputs"] == [
        {"name": "y", "datatype": datatype, "shape": [2], "data": [2, 4]},
    ]


def test_raw_tensors_of_float16_are_computed_over_grpc(tmp_path: Path) -> None:
    model = loaded(tmp_path, doubling("FLOAT16"))
    given = {"name": "x", "datatype": "FP16", "shape": [1, 2]}
    raw = np.array([0.5, 3], np.float16).tobytes()
    (result,) = answers(
        model, encode_message("ModelInferRequest", {"inputs": [given], "raw_input_contents": [raw]}), api="grpc"
    )
    answer = decode_message("ModelInferResponse", result.body)
    assert np.frombuffer(bytes(answer["raw_output_contents"][0]), np.float16).tolist() == [1.0, 6.0]


def test_a_fixed_batch_is_never_joined_and_other_sizes_are_refused(tmp_path: Path) -> None:
    model = loaded(tmp_path, doubling(shape=[2, 1]))

    good, other, again = answers(model, *(asking(tensor("x", rows)) for rows in ([[1], [2]], [[1]], [[3], [4]])))

    assert [outputs(one)["y"] for one in (good, again)] == [[[2], [4]], [[6], [8]]]
    assert (other.status, "the model takes [2, 1]" in error(other)) == (400, True)


def test_requests_are_not_joined_where_inputs_have_rows_of_their_own(tmp_path: Path) -> None:
    made = graph(
        [node("Gather", "x at", "y")],
        [("x", "FLOAT", ["rows", 1]), ("at", "INT64", ["picked"])],
        [("y", "FLOAT", ["picked", 1])],
    )
    model = loaded(tmp_path, made)

    results = answers(
        model,
        asking(tensor("x", [[1]]), tensor("at", [0], "INT64")),
        asking(tensor("x", [[2]]), tensor("at", [0], "INT64")),
        asking(tensor("x", [[3]]), tensor("at", [7], "INT64")),
    )

    assert [outputs(one)["y"] for one in results[:2]] == [[[1]], [[2]]]
    assert (results[2].status, "out of data bounds" in error(results[2])) == (400, True)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([tensor("x", [[1, 1, 1]])], "x: has the shape [1, 3]; the model takes [-1, 2]"),
        ([tensor("x", [1, 1])], "x: has the shape [2]"),
        ([tensor("x", [[1, 1]], "FP64")], "x: is float64; the model takes FP32"),
        ([tensor("x", [["a", "b"]], "BYTES")], "x: is object; the model takes FP32"),
        ([tensor("x", [[1, 1]]), tensor("z", [1])], "x, z were sent; the model takes x"),
        ([], "none were sent"),
    ],
)
def test_inputs_that_are_not_the_models_are_refused_and_others_are_computed(
    tmp_path: Path, tensors: list[Any], words: str
) -> None:
    wrong, good = answers(loaded(tmp_path, doubling()), asking(*tensors), asking(tensor("x", [[1, 1]])))

    assert (wrong.status, words in error(wrong)) == (400, True), error(wrong)
    assert outputs(good)["y"] == [[2, 2]]


def test_sizes_of_one_name_that_differ_are_the_callers_fault_and_other_failures_are_not(tmp_path: Path) -> None:
    made = graph([node("Add", "a b", "y")], [("a", "FLOAT", ["n"]), ("b", "FLOAT", ["n"])], [("y", "FLOAT", ["n"])])
    pair = asking(tensor("a", [1, 2]), tensor("b", [1, 2, 3]))
    (differs,) = answers(loaded(tmp_path, made), pair)
    assert (differs.status, "b: has 3 as its 'n', and a has 2" in error(differs)) == (400, True)

    unnamed = graph(
        [node("Add", "a b", "y")], [("a", "FLOAT", [None]), ("b", "FLOAT", [None])], [("y", "FLOAT", [None])]
    )
    model = loaded(tmp_path, unnamed)
    batch = Batch.of(a_request(1, pair, api="v2"))
    with pytest.raises(RuntimeError, match="Non-zero status code returned while running Add node"):
        model.serve(batch)
    assert batch.answered[1].status == 500
    assert "onnxruntime/core" not in error(batch.answered[1])


def test_an_input_of_no_known_rank_takes_any(tmp_path: Path) -> None:
    model = loaded(tmp_path, doubling(shape=None))

    results = answers(model, asking(tensor("x", 3)), asking(tensor("x", [[1, 2]])), asking(tensor("x", [1], "INT64")))

    assert [outputs(one)["y"] for one in results[:2]] == [6, [[2, 4]]]
    assert (results[2].status, "the model takes FP32" in error(results[2])) == (400, True)


def test_a_broken_file_one_of_a_later_format_and_unknown_operators_say_so(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"garbage" * 100)
    assert why_not(tmp_path) == (
        "model.onnx cannot be read by ONNX Runtime: Load model from model.onnx failed:Protobuf parsing failed."
    )
    model = doubling()
    model.opset_import[0].version = 99
    assert "opset" in why_not(tmp_path, model)
    model = doubling()
    model.ir_version = 99
    assert "Unsupported model IR version: 99" in why_not(tmp_path, model)
    model = graph([node("Evil", "x", "y", domain="com.evil")], [("x", "FLOAT", ["n"])], [("y", "FLOAT", ["n"])])
    model.opset_import.append(onnx.helper.make_opsetid("com.evil", 1))
    assert "com.evil:Evil(-1) is not a registered function/op" in why_not(tmp_path, model)
    assert why_not(tmp_path, graph([], [], [])).startswith("model.onnx cannot be read")
    (tmp_path / "model.onnx").unlink()
    assert why_not(tmp_path) == "model.onnx is not in the model's folder, which holds nothing"


@pytest.mark.parametrize("kind", ["BFLOAT16", "FLOAT8E4M3FN", "COMPLEX64"])
def test_tensors_that_the_protocol_does_not_have_are_refused_when_the_model_loads(tmp_path: Path, kind: str) -> None:
    made = graph([node("Identity", "x", "y")], [("x", kind, ["n"])], [("y", kind, ["n"])])
    assert "cannot be sent" in (said := why_not(tmp_path, made)) or "cannot be read" in said


def test_a_sequence_is_no_tensor(tmp_path: Path) -> None:
    made = graph([node("SequenceConstruct", "x x", "y")], [("x", "FLOAT", ["n"])], [])
    made.graph.output.append(onnx.helper.make_tensor_sequence_value_info("y", onnx.TensorProto.FLOAT, None))
    assert why_not(tmp_path, made).startswith("the model's y is seq(tensor(float)), which cannot be sent")


def weights_in(place: str) -> Any:
    """Return a model that adds to `x` what is in a file."""
    weights = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2])
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=place)
    return graph([node("Add", "x w", "y")], [("x", "FLOAT", ["n", 2])], [("y", "FLOAT", ["n", 2])], [weights])


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder of a model with weights in a file, and another file above it."""
    folder = tmp_path / "model"
    (folder / "more").mkdir(parents=True)
    for place in (folder / "weights.bin", folder / "more" / "weights.bin", tmp_path / "secret.bin"):
        place.write_bytes(np.array([1, 2], np.float32).tobytes())
    (folder / "link.bin").symlink_to("../secret.bin")
    return folder


@pytest.mark.parametrize("place", ["weights.bin", "more/weights.bin"])
def test_weights_may_lie_in_files_of_the_models_folder(beside: Path, place: str) -> None:
    (result,) = answers(loaded(beside, weights_in(place)), asking(tensor("x", [[0, 0], [1, 1]])))
    assert outputs(result)["y"] == [[1, 2], [2, 3]]


@pytest.mark.parametrize(
    "place",
    ["../secret.bin", "more/../../secret.bin", "{root}/secret.bin", "link.bin", "/proc/self/environ", "none.bin"],
)
def test_a_model_reads_no_file_outside_of_its_folder(beside: Path, place: str) -> None:
    model = weights_in(place.format(root=beside.parent))
    (beside / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelNotLoaded, match=r"model\.onnx cannot be read by ONNX Runtime: External data path"):
        onnx_model.load(deployed(beside, "model.onnx", runner="onnx"))


def test_a_kernel_has_its_share_of_threads_and_leaves_the_processor_when_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime: Any = sys.modules["onnxruntime"]
    given: list[Any] = []

    class Watched(runtime.InferenceSession):  # type: ignore[misc]
        def __init__(self, path: str, options: Any, **more: Any) -> None:
            given.append(options)
            super().__init__(path, options, **more)

    monkeypatch.setattr(runtime, "InferenceSession", Watched)
    loaded(tmp_path, doubling(), num_threads=3)
    (options,) = given
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_a_gpu_computes_if_there_is_one_within_the_part_of_its_memory() -> None:
    cpu = ("CPUExecutionProvider", dict[str, object]())
    assert onnx_model.choose_providers(["AzureExecutionProvider", "CPUExecutionProvider"], None) == [cpu]
    both = ["CPUExecutionProvider", "CUDAExecutionProvider"]
    assert onnx_model.choose_providers(both, None) == [("CUDAExecutionProvider", {}), cpu]
    part = {"gpu_mem_limit": 1 << 30, "arena_extend_strategy": "kSameAsRequested"}
    assert onnx_model.choose_providers(both, 1 << 30) == [("CUDAExecutionProvider", part), cpu]


def test_an_onnx_runtime_that_reads_files_outside_of_the_folder_is_refused() -> None:
    for recent in ("1.24.0", "1.32.0", "2.0.0rc1"):
        onnx_model.require_recent(recent)
    with pytest.raises(ModelNotLoaded, match=r"ONNX Runtime 1\.23\.2 reads files outside .* 'onnxruntime>=1\.24'"):
        onnx_model.require_recent("1.23.2")
