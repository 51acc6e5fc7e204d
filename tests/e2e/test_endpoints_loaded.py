"""An ONNX model over real processes: it answers beside a training, and clients of Triton's unload and load it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool

from pliant.client import Client

pytest.importorskip("onnxruntime", reason="needs ONNX Runtime: pip install onnxruntime onnx")
onnx: Any = pytest.importorskip("onnx", reason="models are made with onnx: pip install onnx")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PACED = Path(__file__).with_name("paced.py")
PROGRAM = Path(__file__).with_name("triton_loads.py")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that doubles `x`, in a file."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 2]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "doubles", [x], [y])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    file = tmp_path / "doubles.onnx"
    file.write_bytes(made.SerializeToString())
    return file


@pytest.fixture(autouse=True)
def _no_endpoint_stays(pool: Pool) -> Iterator[None]:
    yield
    with pool.client() as client:
        for endpoint in client.endpoints.list().endpoints:
            client.endpoints.remove(endpoint.name)


def test_an_onnx_model_answers_beside_a_training_and_is_unloaded_and_loaded_by_clients_of_triton(
    pool: Pool, client: Client, model: Path, pace: Pace
) -> None:
    job_id = pool.submit(PACED, "--max", "8", args=("--epochs", "1000", "--pace", str(pace)))
    pool.until(lambda: len(pool.training(client, job_id)) == 8, "the training has all slots")
    pool.cli("deploy", str(model), "--name", "doubles", "--min", "1", "--cold-start-timeout", "2m")

    given = np.array([[0.5, 1.0], [2.0, -3.0]], dtype=np.float32)
    assert client.endpoints.predict("doubles", {"x": given})["y"].tolist() == (2 * given).tolist()
    view = client.endpoints.get("doubles")
    assert (view.versions[0].runner, view.versions[0].metadata["platform"]) == ("onnx", "onnxruntime_onnx")
    assert len(pool.training(client, job_id)) == 7
    assert view.http_url is not None

    token = (pool.home / "token").read_text().strip()
    addresses = (view.http_url.removeprefix("http://"), view.grpc_address or "")
    command = [sys.executable, "-P", str(PROGRAM), *addresses, token]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    pool.until(lambda: client.endpoints.get("doubles").state == "serving", "the server knows the kernel, too")
    (entry,) = client.people.audit(limit=1).entries
    assert (entry.who, entry.action, entry.status) == ("admin", "POST /v1/endpoints/doubles/start", 200)
