"""A data set from a folder to a task, which cannot change it: an upload that was cut in between, and a path."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.pool import Pool, clean_env
from tests.privileges import may_mount, needs_mounts

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

READS = """
import errno, hashlib, json, os, pathlib
folder = pathlib.Path(os.environ["DATA_DIR"])
files = [path for path in folder.rglob("*") if path.is_file()]
found = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

def tried(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

tries = {
    "create": tried(lambda: (folder / "train" / "new").touch()),
    "write": tried(lambda: (folder / "train" / "small").write_text("other")),
    "delete": tried(lambda: (folder / "train" / "small").unlink()),
}
names = ("PLIANT_DATASET", "TRAIN_DATA_DIR", "VAL_DATA_DIR")
told = {"found": found, "tries": tries, "env": [os.environ.get(name) for name in names]}
print(json.dumps(told))
"""
LARGE = 96 << 20


def test_a_killed_upload_is_gone_on_with_and_a_job_reads_the_data(pool: Pool, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "large").write_bytes(random.Random(0).randbytes(1 << 20) * (LARGE >> 20))
    (folder / "train" / "small").write_bytes(b"small")
    command = [sys.executable, "-m", "pliant.cli.app", "--home", str(pool.home), "data", "add", str(folder)]
    sending = subprocess.Popen(command, env=clean_env(), stdout=subprocess.DEVNULL)
    begun = pool.until(
        lambda: next((upload for upload in client.datasets.uploads().uploads if upload.offset), None), "a first chunk"
    )
    sending.kill()
    sending.wait()
    (cut,) = client.datasets.uploads().uploads
    assert begun.offset <= cut.offset < cut.num_bytes
    assert "letters" not in [found.name for found in client.datasets.list()]

    ready = json.loads(pool.cli("data", "add", "--json", str(folder)))
    assert (ready["state"], ready["source"]["upload_id"]) == ("ready", cut.id)
    pool.until(lambda: client.datasets.uploads().uploads == (), "its upload is gone")

    script = tmp_path / "reads.py"
    script.write_text(READS)
    job_id = pool.submit(script, "--fixed", "1", "--dataset", "letters")
    job = client.wait(job_id, timeout_s=90)
    assert job.state == "completed", job.reason
    told = json.loads(pool.cli("logs", job_id, "--task", "1", "--stream", "stdout"))
    assert told["found"] == {f"train/{name}": _sha256(folder / "train" / name) for name in ("large", "small")}
    assert told["env"] == ["letters", str(Path(ready["folder"]) / "train"), None]
    kept = "EROFS" if may_mount() else "EACCES"
    if may_mount() or os.geteuid() != 0:
        assert told["tries"] == dict.fromkeys(("create", "write", "delete"), kept)
    pool.cli("data", "remove", "letters")
    assert not Path(ready["folder"]).exists()


def test_a_job_cannot_change_a_folder_that_is_used_where_it_lies(pool: Pool, client: Client, tmp_path: Path) -> None:
    needs_mounts()
    train = pool.home / "data" / "words" / "train"
    train.mkdir(parents=True)
    (train / "small").write_bytes(b"small")
    ready = json.loads(pool.cli("data", "add", "--root", "words", "--json"))
    assert ready["folder"] == str(train.parent)

    script = tmp_path / "reads.py"
    script.write_text(READS)
    job_id = pool.submit(script, "--fixed", "1", "--dataset", "words")
    job = client.wait(job_id, timeout_s=90)

    assert job.state == "completed", job.reason
    told = json.loads(pool.cli("logs", job_id, "--task", "1", "--stream", "stdout"))
    assert told["tries"] == dict.fromkeys(("create", "write", "delete"), "EROFS")
    (train / "new").touch()
    assert sorted(path.name for path in train.iterdir()) == ["new", "small"]
    assert (train / "small").read_bytes() == b"small"
    pool.cli("data", "remove", "words")


def _sha256(path: Path) -> str:
    return subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
