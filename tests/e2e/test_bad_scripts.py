"""Scripts that cannot be trained: what a person sees, and that nothing else suffers."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.job import JobId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TRAINING = """
import torch
from torch.utils.data import TensorDataset
from pliant.train import Run
x = torch.randn({samples}, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 1000), torch.nn.Linear(1000, 2))
run = Run(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), TensorDataset(x, (x[:, 0] > 0).long()),
          batch_size=16)
for epoch in run.epochs({epochs}):
    for a, b in run:
        {inside}
        run.step(torch.nn.functional.cross_entropy(model(a), b))
    {after}
"""


def training(*, samples: int = 64, epochs: int = 2, inside: str = "pass", after: str = "pass") -> str:
    return TRAINING.format(samples=samples, epochs=epochs, inside=inside, after=after)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A script, how it is submitted, and what becomes of it."""

    text: str
    state: str
    said: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)


CASES = {
    "raises on import": Case(
        text="import torch\nimport no_such_module_anywhere\n",
        state="failed",
        said=("No module named 'no_such_module_anywhere'", 'train.py", line 2'),
    ),
    "raises in the loss": Case(
        text=training(inside="raise ZeroDivisionError('in the loss')"),
        options={"max_tasks": 2},
        state="failed",
        said=("ZeroDivisionError: in the loss",),
    ),
    "is plain": Case(text="print('hello')\n", state="completed", said=("never trained elastically", "Run")),
    "never starts to train": Case(
        text="import threading\nthreading.Event().wait()\n",
        options={"start_timeout_s": 2},
        state="failed",
        said=("2 s",),
    ),
    "exits with a code": Case(
        text="import sys\nsys.exit('the data is not there')\n",
        state="failed",
        said=("code 1", "the data is not there"),
    ),
    "has too few samples": Case(text=training(samples=10), state="failed", said=("10 samples", "batch_size")),
    "has an interpreter without pliant": Case(
        text=training(), options={"python": "/bin/false"}, state="failed", said=("/bin/false",)
    ),
    "has its own interpreter": Case(
        text=training(), options={"python": sys.executable, "max_tasks": 2}, state="completed", said=()
    ),
    "has fewer virtual workers than tasks": Case(
        text=training().replace("batch_size=16)", "batch_size=16, virtual_workers=1)"),
        options={"max_tasks": 2},
        state="completed",
        said=(),
    ),
}


def submit(client: Client, folder: Path, text: str, **options: object) -> JobId:
    folder.mkdir()
    (folder / "train.py").write_text(text)
    return client.submit(folder / "train.py", JobRequest.model_validate({"script": "train.py", **options})).id


def test_a_script_that_does_not_exist_is_refused_before_anything_is_sent(pool: Pool, tmp_path: Path) -> None:
    said = pool.cli("submit", str(tmp_path / "missing.py"), code=2)
    assert "missing.py" in said


def test_a_script_that_does_not_parse_is_refused_with_its_line(pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import torch\nfor epoch in range(3)\n    pass\n")
    said = pool.cli("submit", str(script), code=2)
    assert "broken.py" in said
    assert "line 2" in said


def test_what_is_wrong_is_said_and_the_slots_are_free_again(client: Client, tmp_path: Path) -> None:
    ids = {name: submit(client, tmp_path / name, one.text, **one.options) for name, one in CASES.items()}
    jobs = {name: client.wait(job_id, timeout_s=90, poll_s=0.1) for name, job_id in ids.items()}

    for name, one in CASES.items():
        assert jobs[name].state == one.state, f"{name}: {jobs[name].reason}"
        assert [words for words in one.said if words not in jobs[name].reason] == [], f"{name}: {jobs[name].reason}"
    assert jobs["has fewer virtual workers than tasks"].max_tasks == 1, "a maximum above them is lowered visibly"
    Pool.until(
        lambda: all(task.ended for job_id in ids.values() for task in client.job(job_id).tasks),
        "all processes are ended",
    )
    Pool.until(lambda: not any(slot.job_id for slot in client.cluster().slots), "all slots are free")


LIMIT = """if epoch > 0:
        import os, pathlib, resource, signal, time
        checkpoints = pathlib.Path(os.environ["RESULT_DIR"], "checkpoint")
        deadline = time.monotonic() + 1
        while not list(checkpoints.glob("step-*.ckpt")) and time.monotonic() < deadline:
            time.sleep(0.01)
        if list(checkpoints.glob("step-*.ckpt")):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (45000, 45000))"""


def test_a_full_disk_while_checkpointing_keeps_the_last_good_checkpoint(
    client: Client, pool: Pool, tmp_path: Path
) -> None:
    # A file-size limit between the size of the model and that of a checkpoint stands in for the full disk: the kernel
    # refuses the same write. It is set as soon as an epoch's checkpoint is in its place, however long the disk takes;
    # that of the next epoch may be on its way by then.
    job = client.wait(submit(client, tmp_path / "code", training(epochs=12, after=LIMIT)), timeout_s=60, poll_s=0.1)
    events = client.events(job_id=job.id, limit=1000).events
    failed = [event.message for event in events if event.kind == "checkpoint.failed"]
    saved = [str(event.data["path"]) for event in events if event.kind == "checkpoint.saved"]
    assert (job.state, job.reason) == ("completed", job.reason)
    assert 1 <= len(saved) <= 2
    assert len(failed) == 1  # told once, until something else is wrong
    assert "File too large" in failed[0]
    result = pool.home / "jobs" / job.id / "result"
    assert sorted(str(path.relative_to(result)) for path in (result / "checkpoint").iterdir()) == saved
