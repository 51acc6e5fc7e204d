"""An unmodified client of Triton unloads and loads the model `doubles` over both protocols (`test_endpoints_loaded`).

    python -P triton_loads.py HTTP_ADDRESS GRPC_ADDRESS TOKEN

A model that is loaded answers at once, one that is not loaded refuses. Ends with 0 if all is as it should be.
"""

import sys
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tritonclient.utils import InferenceServerException


def check(library: Any, address: str, token: str) -> None:
    said = {"headers": {"authorization": f"Bearer {token}"}}
    x = library.InferInput("x", [1, 2], "FP32")
    x.set_data_from_numpy(np.array([[1.5, -2.0]], dtype=np.float32))
    more: dict[str, Any] = {"network_timeout": 120.0} if library is over_http else {}
    with library.InferenceServerClient(address, **more) as client:
        for _ in range(2):
            client.unload_model("doubles", **said)
            assert not client.is_model_ready("doubles", **said)
            with pytest.raises(InferenceServerException, match="doubles is stopped"):
                client.infer("doubles", [x], **said)
            client.load_model("doubles", **said)
            assert client.is_model_ready("doubles", **said)
            assert client.infer("doubles", [x], **said).as_numpy("y").tolist() == [[3.0, -4.0]]


if __name__ == "__main__":
    check(over_http, sys.argv[1], sys.argv[3])
    check(over_grpc, sys.argv[2], sys.argv[3])
