"""Scripts that cannot be trained: what a person sees, and that nothing else suffers."""

import sys
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.job import Job

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


def submitted(client: Client, folder: Path, text: str, **options: object) -> Job:
    """Submit a script with this text and wait for its end."""
    script = folder / "train.py"
    script.write_text(text)
    job = client.submit(script, JobRequest.model_validate({"script": "train.py", **options}))
    return client.wait(job.id, timeout_s=60, poll_s=0.1)


def test_a_script_that_does_not_exist_is_refused_before_anything_is_sent(pool: Pool, tmp_path: Path) -> None:
    said = pool.cli("submit", str(tmp_path / "missing.py"), code=2)
    assert "missing.py" in said


def test_a_script_that_does_not_parse_is_refused_with_its_line(pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import torch\nfor epoch in range(3)\n    pass\n")
    said = pool.cli("submit", str(script), code=2)
    assert "broken.py" in said
    assert "line 2" in said


def test_a_script_that_raises_on_import_fails_with_its_own_traceback(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, "import torch\nimport no_such_module_anywhere\n")
    assert job.state == "failed"
    assert "No module named 'no_such_module_anywhere'" in job.reason
    assert 'train.py", line 2' in job.reason


def test_a_script_that_raises_in_the_loss_fails_with_its_own_traceback(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, training(inside="raise ZeroDivisionError('in the loss')"), max_tasks=2)
    assert job.state == "failed"
    assert "ZeroDivisionError: in the loss" in job.reason


def test_a_plain_script_is_told_what_was_expected_and_completes(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, "print('hello')\n")
    assert job.state == "completed"
    assert "never trained elastically" in job.reason
    assert "Run" in job.reason


def test_a_script_that_never_starts_to_train_is_ended(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, "import threading\nthreading.Event().wait()\n", start_timeout_s=2)
    assert job.state == "failed"
    assert "2 s" in job.reason
    Pool.until(lambda: all(task.ended for task in client.job(job.id).tasks), "its process is ended")


def test_a_script_that_exits_with_a_code_fails_with_its_last_words(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, "import sys\nsys.exit('the data is not there')\n")
    assert job.state == "failed"
    assert "code 1" in job.reason
    assert "the data is not there" in job.reason


def test_a_data_set_smaller_than_a_global_batch_fails_with_what_to_do(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, training(samples=10))
    assert job.state == "failed"
    assert "10 samples" in job.reason
    assert "batch_size" in job.reason


def test_an_interpreter_without_pliant_fails_with_what_to_do(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, training(), python="/bin/false")
    assert job.state == "failed"
    assert "/bin/false" in job.reason


def test_the_slots_of_failed_jobs_are_free_again(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, training(), max_tasks=2)
    assert job.state == "completed"
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
    job = submitted(client, tmp_path, training(epochs=12, after=LIMIT))
    events = client.events(job_id=job.id, limit=1000).events
    failed = [event.message for event in events if event.kind == "checkpoint.failed"]
    saved = [str(event.data["path"]) for event in events if event.kind == "checkpoint.saved"]
    assert (job.state, job.reason) == ("completed", job.reason)
    assert 1 <= len(saved) <= 2
    assert len(failed) == 1  # told once, until something else is wrong
    assert "File too large" in failed[0]
    result = pool.home / "jobs" / job.id / "result"
    assert sorted(str(path.relative_to(result)) for path in (result / "checkpoint").iterdir()) == saved


def test_a_job_may_bring_its_own_interpreter(client: Client, tmp_path: Path) -> None:
    job = submitted(client, tmp_path, training(), python=sys.executable, max_tasks=2)
    assert (job.state, job.reason) == ("completed", job.reason)


def test_a_maximum_above_the_scripts_own_virtual_workers_is_lowered_visibly(client: Client, tmp_path: Path) -> None:
    text = training().replace("batch_size=16)", "batch_size=16, virtual_workers=1)")
    job = submitted(client, tmp_path, text, max_tasks=2)
    assert job.state == "completed"
    assert job.max_tasks == 1
