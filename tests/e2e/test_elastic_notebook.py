"""The notebook of the examples with `FabricModel` trains on a live server what it would have trained by itself."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.pool import HERE, Pool

from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NOTEBOOK = HERE.parents[1] / "examples" / "notebooks" / "fabric_model.ipynb"
SAME = """
here = make()
here.train(10, 32, 4, submit=False)
pairs = zip(here.model.state_dict().values(), fabric.model.state_dict().values())
momenta = zip(*(list(f._script.optimizers.values())[0].state.values() for f in (here, fabric)))
print("same weights", all(torch.equal(a, b) for a, b in pairs))
print("same momenta", all(torch.equal(a["momentum_buffer"], b["momentum_buffer"]) for a, b in momenta))
"""
DOWNLOAD = """
import zipfile
print(sorted(zipfile.ZipFile(fabric.download("out")).namelist()))
"""
BROKEN = """
def broken():
    raise OSError("the disk of day one is not there")

FabricModel(Net(), broken, F.cross_entropy, torch.optim.SGD(Net().parameters(), lr=0.1)).train(1, 32, 2)
"""
INTERRUPTED = """
import os, signal, threading, time
from pathlib import Path
from pliant.client import Client

def interrupt_when_it_runs():
    with Client.from_home(Path(os.environ["PLIANT_HOME"])) as client:
        while client.jobs().jobs[0].state.value != "running":
            time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt_when_it_runs).start()
make().train(1_000_000, 32, 2)
"""


def test_a_notebook_takes_slots_and_comes_to_what_it_would_have_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat  # takes seconds, and only here
    from nbclient import NotebookClient

    pool = Pool(tmp_path / "home", slots=4)
    pool.up()
    monkeypatch.setenv("PLIANT_HOME", str(pool.home))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as many as a task has here: the same bits
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    num_cells = len(notebook.cells)
    more = (SAME, DOWNLOAD, BROKEN, INTERRUPTED)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(tmp_path)}}
    playing = NotebookClient(notebook, timeout=200, kernel_name="python3", resources=resources, allow_errors=True)
    try:
        done = playing.execute()
        with pool.client() as client:
            jobs = client.jobs().jobs
    finally:
        pool.close()
    assert [error for cell in done.cells[:num_cells] for error in errors(cell)] == []
    same, download, broken, interrupted = done.cells[num_cells:]
    assert "same weights True\nsame momenta True" in printed(same)
    assert "'train/model_epoch_final.pth'" in printed(download)
    assert "OSError: the disk of day one is not there" in errors(broken)[0]
    assert errors(interrupted)[0].startswith("KeyboardInterrupt")
    assert f"{jobs[0].id} is stopped" in printed(interrupted)
    assert [job.state for job in jobs[1:]] == [JobState.FAILED, JobState.COMPLETED]
    assert jobs[0].state in (JobState.STOPPING, JobState.STOPPED)
    assert jobs[-1].max_tasks == 4
    assert f"Job {jobs[-1].id} finishes with state FINISHED." in "".join(map(printed, done.cells))


def printed(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", ()))


def errors(cell: Any) -> list[str]:
    outputs = cell.get("outputs", ())
    return [f"{one['ename']}: {one['evalue']}" for one in outputs if one["output_type"] == "error"]
