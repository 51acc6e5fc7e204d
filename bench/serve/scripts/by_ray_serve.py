"""Ray Serve with one replica: `by_ray_serve.py PORT echo|cnn`. Its variables decide whether it is tuned."""

import sys
import time
from typing import Any

import ray
from net import answer, build
from ray import serve


@serve.deployment(num_replicas=1)
class Echo:
    """Sends back what came."""

    async def __call__(self, request: Any) -> Any:
        return await request.json()


@serve.deployment(num_replicas=1, max_ongoing_requests=100)
class Cnn:
    """Batches of images."""

    def __init__(self) -> None:
        self.net = build()

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.002)
    async def compute(self, images: list[Any]) -> list[Any]:
        return answer(self.net, images)

    async def __call__(self, request: Any) -> Any:
        return {"y": await self.compute((await request.json())["inputs"][0]["data"])}


def main() -> None:
    port, what = int(sys.argv[1]), sys.argv[2]
    ray.init(num_cpus=4, include_dashboard=False, _node_ip_address="127.0.0.1", object_store_memory=150 << 20)
    serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config={"enable_access_log": False})
    app: Any = Echo if what == "echo" else Cnn
    if "tuned" in sys.argv[3:]:
        app = app.options(max_ongoing_requests=1000)
    serve.run(app.bind(), route_prefix="/")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
