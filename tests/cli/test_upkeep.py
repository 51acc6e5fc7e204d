"""Rules of a server and its clean-up, as the command line tells of them."""

from tests.cli.conftest import Run
from tests.server.played import Played


def test_a_clean_up_says_what_it_would_remove_and_what_it_did(run: Run, pool: Played) -> None:
    for number in (1, 2):
        pool.add(max_tasks=1)
        pool.save(f"job-{number}", "log/job.1.local/stdout", b"x" * 2000)
        pool.fail(f"job-{number}")
    assert run(pool, "retention", "--keep", "logs=2KB").code == 0
    would, did, again = (run(pool, "cleanup", *more).out.splitlines()[-1] for more in (["-n"], [], []))
    assert would.startswith("1 thing would be removed, 2.0 KiB"), would
    assert did.startswith("1 thing was removed, 2.0 KiB"), did
    assert again.startswith("0 things were removed"), again
    (gone,) = [job for job in ("1", "2") if run(pool, "logs", job).code]
    assert "were removed at" in run(pool, "logs", gone).err
    assert "left out: log: removed at" in run(pool, "files", gone).err
