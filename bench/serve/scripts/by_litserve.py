"""LitServe, as its documentation teaches: `by_litserve.py PORT echo|cnn`."""

import sys
from typing import Any

import litserve
from fastapi import Request
from net import answer, build


class Echo(litserve.LitAPI):
    """Sends back what came."""

    def setup(self, device: str) -> None:
        """Nothing has to be loaded."""

    def decode_request(self, request: Request) -> Any:
        return request

    def predict(self, x: Any) -> Any:
        return x

    def encode_response(self, output: Any) -> Any:
        return output


class Cnn(litserve.LitAPI):
    """Batches of images."""

    def setup(self, device: str) -> None:  # noqa: ARG002 - the signature of LitServe
        self.net = build()

    def decode_request(self, request: Request) -> Any:
        return request["inputs"][0]["data"]

    def batch(self, inputs: Any) -> Any:
        return inputs

    def predict(self, x: Any) -> Any:
        return answer(self.net, x)

    def unbatch(self, output: Any) -> Any:
        return output

    def encode_response(self, output: Any) -> Any:
        return {"y": output}


if __name__ == "__main__":
    api = Echo() if sys.argv[2] == "echo" else Cnn(max_batch_size=8, batch_timeout=0.002)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
