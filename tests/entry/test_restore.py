"""A backup of one server becomes another one."""

import json
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.registry import Thing
from tests.contracts.searches import a_decision, a_search, a_trial, completed
from tests.contracts.searches import write as write_search
from tests.contracts.store import a_job, a_metric, a_task, an_event
from tests.hostile import deep_tree

from pliant.control.upkeep.backup import Backup
from pliant.core.errors import Conflict, InvalidInput
from pliant.core.job import JobId
from pliant.core.ports import EventFilter, Writes
from pliant.core.registry import AuditEntry
from pliant.entry.restore import main
from pliant.entry.server.restore import restore_backup
from pliant.sim.clock import VirtualClock
from pliant.store.sql import SqlStore

FILES = {
    "secret": "s" * 32,
    "token": "t",
    "jobs/job-1/code/train.py": "print()",
    "jobs/job-1/result/model/model.pt": "weights",
    "jobs/job-1/result/checkpoint/step-1.ckpt": "checkpoint",
    "endpoints/cd.tar.gz": "code of an endpoint",
    "searches/ab.tar.gz": "code of trials",
    "data/digits/1.png": "an image",
    "environments/abc/bin/python": "can be built again",
    "agent/records": "of this machine",
    "uploads/half": "half",
    "server.log": "lines",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "old home of ä"
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


@pytest.fixture
def store(home: Path) -> Iterator[SqlStore]:
    opened = SqlStore(f"sqlite:///{home / 'pliant.db'}")
    weights = str(home / "jobs/job-1/result/model/model.pt")
    job = replace(a_job(), spec=replace(a_job().spec, weights=weights))
    points = tuple(a_metric(step, value=float("nan") if step == 3 else step / 7) for step in range(100))
    opened.write(Writes(jobs=(job,), tasks=(a_task(),), events=(an_event("größer"),), metrics=points))
    opened.registry.add(Thing(name="one", size=3), at=1.0)
    opened.audit.append(AuditEntry(at=1.0, who="ada", action="POST /v1/jobs", status=201))
    assert opened.next_id("job") == 1
    yield opened
    opened.close()


def backed_up(store: SqlStore, home: Path, to: Path, *, results: bool = True, data: bool = True) -> Path:
    chunks = Backup(dumps=store.records, home=home, clock=VirtualClock(5.0))(results=results, data=data)
    with to.open("wb") as out:
        out.writelines(chunks)
    assert not list(home.glob(".backup*"))
    return to


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {name.removeprefix("home/") for name in tar.getnames() if name.startswith("home/")}


def test_everything_comes_back_in_another_folder(
    store: SqlStore, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLIANT_DATABASE", raising=False)
    archive, new = backed_up(store, home, tmp_path / "b.tar.gz"), tmp_path / "new"
    assert main([str(archive), "--home", str(new)]) == 0
    assert "start it with `pliant up`" in capsys.readouterr().out
    again = SqlStore(f"sqlite:///{new / 'pliant.db'}")
    job = again.job(JobId("job-1"))
    assert job is not None
    assert job.spec.weights == str(new / "jobs/job-1/result/model/model.pt")
    old = store.job(JobId("job-1"))
    assert old is not None
    assert replace(job, spec=old.spec) == old
    assert again.tasks() == store.tasks()
    assert again.events(EventFilter()) == store.events(EventFilter())
    assert repr(again.metrics(job.id)) == repr(store.metrics(job.id))
    assert again.chart(job.id) == store.chart(job.id)
    assert again.registry.get(Thing, "one") == store.registry.get(Thing, "one")
    assert again.audit.entries() == store.audit.entries()
    assert again.next_id("job") == 2
    again.close()
    kept = {name for name in FILES if not name.startswith(("environments", "agent", "uploads", "server.log"))}
    found = {
        p.relative_to(new).as_posix() for p in new.rglob("*") if p.is_file() and not p.name.startswith("pliant.db")
    }
    assert found == kept
    assert stat.S_IMODE((new / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    assert not list(tmp_path.glob(".new*"))


def test_whatever_a_script_names_its_files_the_backup_can_be_restored(
    store: SqlStore, home: Path, tmp_path: Path
) -> None:
    result = home / "jobs" / "job-1" / "result"
    strange = [b"a\nb", b"a\\x0ab", "turned \u202e".encode(), b"\xff", b"A", b"a", b" ", b"\n" * 200, b"left-out.txt"]
    for name in strange:
        (result / os.fsdecode(name)).write_bytes(b"content")
    (result / "link").symlink_to("/etc")
    (result / "C:").mkdir()
    deep_tree(result / "deep", 120)
    new = tmp_path / "new"
    restore_backup(backed_up(store, home, tmp_path / "b.tar.gz"), new, None)

    restored = {path.name for path in (new / "jobs" / "job-1" / "result").iterdir() if path.is_file()}
    plain = {"A", "a", " ", "left-out.txt"}
    assert restored == plain | {"a\\x0ab", "a\\x5cx0ab", "turned \\u202e", "\\udcff"}


def test_searches_come_back_with_their_trials_and_paths_lead_into_the_new_folder(
    store: SqlStore, home: Path, tmp_path: Path
) -> None:
    weights = "jobs/job-1/result/model/größe.pt"
    search = replace(a_search(), job=replace(a_search().job, weights=str(home / weights)))
    trials = (completed(0, float("inf")), a_trial(1, reports=((1, float("nan")), (3, -0.0))))
    store.searches.add(search)
    write_search(store.searches, *trials, state='{"rng": [1]}', decisions=[a_decision(1, 0), a_decision(2)])
    new = tmp_path / "größer"
    restore_backup(backed_up(store, home, tmp_path / "b.tar.gz", results=False, data=False), new, None)

    with closing(SqlStore(f"sqlite:///{new / 'pliant.db'}")) as again:
        searches = again.searches
        assert searches.search("one") == replace(search, job=replace(search.job, weights=str(new / weights)))
        assert repr(searches.trials("one")) == repr(trials)
        assert searches.best_trials("one", maximize=True) == trials[:1]
        assert searches.decisions("one") == (a_decision(1, 0), a_decision(2))
        assert searches.sampler_state("one") == '{"rng": [1]}'
    assert (new / "searches" / "ab.tar.gz").read_text() == "code of trials"


def test_results_and_data_can_be_left_out(store: SqlStore, home: Path, tmp_path: Path) -> None:
    archive = backed_up(store, home, tmp_path / "b.tar.gz", results=False, data=False)
    kept = {"secret", "token", "jobs/job-1/code/train.py", "endpoints/cd.tar.gz", "searches/ab.tar.gz"}
    assert names(archive) == kept


def test_nothing_is_overwritten(store: SqlStore, home: Path, tmp_path: Path) -> None:
    archive = backed_up(store, home, tmp_path / "b.tar.gz")
    with pytest.raises(Conflict, match="is not empty"):
        restore_backup(archive, home, None)
    with pytest.raises(Conflict, match="is not empty"):
        restore_backup(archive, tmp_path / "new", f"sqlite:///{home / 'pliant.db'}")
    assert not (tmp_path / "new").exists()


def test_what_is_no_whole_backup_is_refused_and_leaves_nothing(store: SqlStore, home: Path, tmp_path: Path) -> None:
    archive, new = backed_up(store, home, tmp_path / "b.tar.gz"), tmp_path / "new"
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-100])
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz") as tar:
        tar.add(home / "token", "token")
    changed = tmp_path / "changed.tar.gz"
    with tarfile.open(archive) as source, tarfile.open(changed, "w:gz") as out:
        for member in source:
            content = source.extractfile(member)
            assert content is not None
            if member.name == "tables/jobs.jsonl":
                (tmp_path / "jobs").write_bytes(content.read().replace(b"digits", b"figure"))
                out.add(tmp_path / "jobs", member.name)
            else:
                out.addfile(member, content)
    for broken, message in ((cut, "not a whole"), (other, "no backup of Pliant"), (changed, "not as it was written")):
        with pytest.raises(InvalidInput, match=message):
            restore_backup(broken, new, None)
        assert not new.exists()


def test_a_backup_of_a_newer_server_is_refused(store: SqlStore, home: Path, tmp_path: Path) -> None:
    archive = backed_up(store, home, tmp_path / "b.tar.gz")
    newer = tmp_path / "newer.tar.gz"
    with tarfile.open(archive) as source, tarfile.open(newer, "w:gz") as out:
        for member in source:
            content = source.extractfile(member)
            assert content is not None
            if member.name == "manifest.json":
                manifest = json.loads(content.read()) | {"revision": "9999"}
                (tmp_path / "m").write_text(json.dumps(manifest))
                out.add(tmp_path / "m", member.name)
            else:
                out.addfile(member, content)
    with pytest.raises(InvalidInput, match="a newer one made it"):
        restore_backup(newer, tmp_path / "new", None)
