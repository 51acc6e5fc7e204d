"""BentoML's services; `bentoml serve by_bentoml:Echo --port PORT` runs one."""

from typing import Any

import bentoml
from net import answer, build


@bentoml.service(workers=1)
class Echo:
    """Sends back what came."""

    @bentoml.api
    async def infer(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        return {"inputs": inputs}


@bentoml.service(workers=1)
class Cnn:
    """Batches of images, put together by BentoML's adaptive batching."""

    def __init__(self) -> None:
        self.net = build()

    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=50)
    def infer(self, inputs: list[dict[str, Any]]) -> list[list[float]]:
        return answer(self.net, [one["data"] for one in inputs])
