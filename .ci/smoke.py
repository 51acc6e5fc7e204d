"""A training of a few seconds through an installed Pliant: no source tree, no development tools."""

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.errors import Unavailable
from pyedt.fabric_model import FabricModel  # IBM's names are in the wheel, too

SCRIPT = """
import torch
from pliant.train import Run

torch.manual_seed(0)
x = torch.randn(256, 4)
model = torch.nn.Linear(4, 1)
data = torch.utils.data.TensorDataset(x, x @ torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=32)
for epoch in run.epochs(20):
    for inputs, targets in run:
        run.step(torch.nn.functional.mse_loss(model(inputs), targets))
"""


def connect(home: Path) -> Client:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            client = Client.from_home(home)
        except Unavailable:
            time.sleep(0.1)
            continue
        if client.healthy():
            return client
        client.close()
    raise SystemExit("the server did not come up within 60 s")


def console_of(url: str) -> str:
    """Return the name of the console's program, which the page names and the server has."""
    page = Request(url, headers={"Accept": "text/html"})
    with urlopen(page, timeout=10) as answer:  # plain HTTP, to ourselves
        found = re.search(r"assets/index-[A-Za-z0-9_-]+\.js", answer.read().decode())
    if found is None:
        raise SystemExit("the wheel has no console")
    with urlopen(f"{url}/{found[0]}", timeout=10) as answer:
        return f"{found[0]}, {len(answer.read()):,} bytes"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, connect(Path(os.environ["PLIANT_HOME"])) as client:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        job = client.submit(script, JobRequest(script="train.py", max_tasks=2))
        job = client.wait(job.id, timeout_s=120)
        print(f"{job.id} is {job.state}: {job.reason}")
        result = client.result(job.id, Path(folder) / "result")
        print(f"{FabricModel.__module__} is there")
        print(f"the console is there: {console_of(client.url)}")
        return 0 if job.state == "completed" and (result / "model" / "model.pt").exists() else 1


if __name__ == "__main__":
    sys.exit(main())
