"""What is due: what is new at once, what changes again and again now and then, all that has changed at the end."""

from pliant.core.copies import FilesToCopy, FileToCopy
from pliant.objects.due import AGAIN_S, LastCopy, due, kept
from pliant.objects.manifest import StoredFile

OLD, NEW = "result/checkpoint/step-000000000100.ckpt", "result/checkpoint/step-000000000200.ckpt"
LOG, MODEL, CODE = "result/log/job-1.1.local/stdout", "result/model/model.pt", "submitted/archive"
MIB = 1 << 20


def a_file(name: str, num_bytes: int = 10, changed: int = 1, *, is_urgent: bool = False) -> FileToCopy:
    return FileToCopy(name=name, mark=(num_bytes, changed, 7), is_urgent=is_urgent)


def names(found: FilesToCopy, last: dict[str, LastCopy], now: float, *, is_over: bool = False) -> list[str]:
    return [file.name for file in due(found, last, now, is_over=is_over)]


def stored(*names: str) -> dict[str, StoredFile]:
    return {name: StoredFile(key=name, num_bytes=1, sha256="0" * 64) for name in names}


def test_all_that_is_new_is_due_and_first_what_the_job_cannot_go_on_without() -> None:
    urgent = [a_file(name, is_urgent=True) for name in (OLD, CODE, NEW)]
    found = FilesToCopy(files=(a_file(LOG), *urgent, a_file(MODEL)))
    assert names(found, {}, 0.0) == [NEW, OLD, CODE, LOG, MODEL]


def test_what_has_changed_waits_a_minute_and_longer_the_longer_it_is() -> None:
    log = FilesToCopy(files=(a_file(LOG, 256 * MIB),))
    last = {LOG: LastCopy(mark=(10, 1, 7), at=1000.0)}
    assert names(log, last, 1000.0 + AGAIN_S) == []
    assert names(log, last, 1000.0 + AGAIN_S + 63.9) == []
    assert names(log, last, 1000.0 + AGAIN_S + 64.0) == [LOG]
    assert names(log, last, 1000.0, is_over=True) == [LOG]


def test_what_has_not_changed_is_not_due_however_long_ago() -> None:
    found = FilesToCopy(files=(a_file(LOG), a_file(NEW, is_urgent=True)))
    last = {name: LastCopy(mark=(10, 1, 7), at=0.0) for name in (LOG, NEW)}
    assert names(found, last, 1e9, is_over=True) == []


def test_what_the_job_cannot_go_on_without_does_not_wait() -> None:
    found = FilesToCopy(files=(a_file(NEW, changed=2, is_urgent=True),))
    assert names(found, {NEW: LastCopy(mark=(10, 1, 7), at=1000.0)}, 1000.0) == [NEW]


def test_what_is_gone_is_dropped_but_for_the_newest_checkpoint() -> None:
    files = stored(OLD, NEW, LOG, MODEL)
    assert kept(files, FilesToCopy(files=(a_file(LOG),))) == stored(NEW, LOG)
    assert kept(files, FilesToCopy(files=(a_file(OLD),))) == stored(NEW)


def test_what_cannot_be_looked_at_is_not_taken_for_gone() -> None:
    files = stored(LOG, MODEL)
    assert kept(files, FilesToCopy(files=(), left_out={"result/log": "it cannot be listed"})) == stored(LOG)
    assert kept(files, FilesToCopy(files=(), left_out={MODEL: "it is a pipe"})) == stored(MODEL)
    assert kept(files, FilesToCopy(files=(), is_whole=False)) == files
