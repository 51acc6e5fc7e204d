"""A job that has more to say than one message at a time could store."""

from pathlib import Path

import pytest
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NUM_EPOCHS = 2000
SCRIPT = f"""
import torch
from torch.utils.data import TensorDataset
from pliant.train import Run

x = torch.randn(8, 2)
model = torch.nn.Linear(2, 2)
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
for _ in run.epochs({NUM_EPOCHS}):
    for part, labels in run:
        run.step(torch.nn.functional.cross_entropy(model(part), labels))
"""


def test_every_end_of_thousands_of_very_short_epochs_is_told(pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text(SCRIPT)
    job_id = pool.submit(script)
    with pool.client() as client:
        job = client.wait(job_id, timeout_s=180)
        events = client.events(job_id=job_id, limit=10_000).events

    assert (job.state, job.reason) == ("completed", "all epochs are trained and the model is saved")
    assert job.progress is not None
    assert job.progress.step == NUM_EPOCHS
    assert [event.data["epoch"] for event in events if event.kind == "epoch.finished"] == [*range(NUM_EPOCHS)]
