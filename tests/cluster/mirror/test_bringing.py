"""What a machine fetches is there whole, once, with modes, times and links, and as nobody else left it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.joined.proxy import Proxy
from tests.cluster.mirror.conftest import Desk, Machine
from tests.contracts.process_stage import until

from pliant.cluster.mirror.content import FOLDER
from pliant.core.errors import Conflict, NotFound, Unavailable


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_the_code_of_a_job_is_here_with_modes_times_and_empty_folders(desk: Desk, machine: Machine) -> None:
    job = desk.job(train="import torch\n")
    (job / "code" / "run.sh").write_text("#!/bin/sh\n")
    (job / "code" / "run.sh").chmod(0o750)
    os.utime(job / "code" / "run.sh", (1e9, 1e9))
    (job / "code" / "out" / "empty").mkdir(parents=True)
    (job / "code" / "nothing").touch()

    machine.bringer().bring(machine.connect(job / "code"), machine.tree(job / "code"))

    here = machine.home / "jobs" / "job-1" / "code"
    assert names(here) == {"train.py", "run.sh", "out", "out/empty", "nothing"}
    assert (here / "train.py").read_text() == "import torch\n"
    facts = (here / "run.sh").stat()
    assert (stat.S_IMODE(facts.st_mode), facts.st_mtime) == (0o750, 1e9)


def test_what_is_here_already_is_not_fetched_again_and_what_is_alike_comes_once(desk: Desk, machine: Machine) -> None:
    job = desk.job(a="x" * 5000, b="x" * 5000)
    bringer, tree, connection = machine.bringer(), machine.tree(job / "code"), machine.connect(job / "code")
    fetched: list[str] = []
    fetch = connection.fetch
    connection.fetch = lambda path, parts, place: (  # type: ignore[method-assign]
        fetched.extend(part.name for part in parts),
        fetch(path, parts, place),
    )[1]
    bringer.bring(connection, tree)
    assert len(fetched) == 1
    bringer.bring(connection, tree)
    (job / "code" / "c.py").write_text("new")
    bringer.bring(connection, tree)
    assert fetched[1:] == ["c.py"]


def test_a_folder_of_the_servers_own_that_has_not_changed_costs_one_question(desk: Desk, machine: Machine) -> None:
    environment = desk.home / "environments" / "abc"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to("/usr/bin/python3")
    (environment / "large.so").write_bytes(b"s" * (2 << 20))
    os.link(environment / "large.so", environment / "twin.so")
    connection, tree = machine.connect(environment), machine.tree(environment, is_own=True)

    digest, brought = machine.bringer().bring(connection, tree)
    here = machine.home / "environments" / "abc"
    assert os.readlink(here / "bin" / "python") == "/usr/bin/python3"
    assert set(brought) == {"large.so", "twin.so"}
    assert (here / "large.so").samefile(here / "twin.so"), "a large file that nobody writes to is on the disk once"

    assert machine.bringer().bring(connection, tree, known=digest) == (digest, {})
    (environment / "new.py").write_text("")
    assert machine.bringer().bring(connection, tree, known=digest)[0] != digest


def test_what_was_left_here_and_is_not_the_servers_is_gone(desk: Desk, machine: Machine) -> None:
    job = desk.job(train="1")
    (job / "code" / "data").mkdir()
    (job / "code" / "data" / "x").write_text("server's")
    here = machine.home / "jobs" / "job-1" / "code"
    (here / "data").mkdir(parents=True)
    (here / "train.py").symlink_to("/etc/passwd")
    (here / "step-7.ckpt").write_text("of a history that is over")
    (here / "data" / "x").mkdir()
    (here / "data" / "x" / "y").write_text("")

    machine.bringer().bring(machine.connect(job / "code"), machine.tree(job / "code"))

    assert names(here) == {"train.py", "data", "data/x"}
    assert (here / "train.py").read_text() == "1"
    assert not (here / "train.py").is_symlink()


def test_no_link_that_was_left_here_leads_a_file_elsewhere(desk: Desk, machine: Machine, tmp_path: Path) -> None:
    job = desk.job()
    (job / "code" / "sub").mkdir()
    (job / "code" / "sub" / "secret").write_text("overwritten")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("mine")
    here = machine.home / "jobs" / "job-1" / "code"
    here.mkdir(parents=True)
    (here / "sub").symlink_to(elsewhere)

    machine.bringer().bring(machine.connect(job / "code"), machine.tree(job / "code"))

    assert (elsewhere / "secret").read_text() == "mine"
    assert (here / "sub" / "secret").read_text() == "overwritten"


def test_only_what_the_order_names_may_be_read(desk: Desk, machine: Machine) -> None:
    job, other = desk.job(), desk.job("job-2", secret="2")
    (desk.home / "token").write_text("admin")
    connection = machine.connect(job / "code")

    for path in (
        other / "code",
        desk.home,
        desk.home / "token",
        desk.home / "tls",
        Path("/etc"),
        job / "code/../../..",
    ):
        with pytest.raises(Conflict, match="was not named by this task's order|is no whole path"):
            connection.list(str(path))
    assert connection.list(str(job / "result"))[1] == (), "the folders of its own job are its own"
    assert connection.list(str(desk.home / "address"))[1] == (), "where the server is, is no secret"


def test_a_ticket_that_is_not_the_servers_own_and_a_task_that_is_not_there_are_refused(
    desk: Desk, machine: Machine
) -> None:
    desk.job()
    other = desk.machine("c")
    desk.living["c", "job-2.1"] = "job-2"
    with pytest.raises(NotFound, match=r"no task 'job-2\.1' lives on b"):
        machine.connect(desk.home / "token", task="job-2.1")
    name, machine.name = machine.name, other.name  # the ticket is another machine's
    with pytest.raises(Conflict, match="is none of this server's"):
        machine.connect(desk.home / "token")
    machine.name = name


def test_what_tasks_put_into_the_way_is_not_handed_out(desk: Desk, machine: Machine) -> None:
    job = desk.job(train="1")
    (desk.home / "token").write_text("admin")
    (job / "code" / "link").symlink_to(desk.home / "token")
    os.link(desk.home / "token", job / "code" / "twin")
    os.mkfifo(job / "code" / "pipe")
    connection = machine.connect(job / "code")

    listed = connection.list(str(job / "code"))[1]
    assert listed is not None
    assert {entry.name for entry in listed if entry.is_file} == {"train.py"}
    machine.bringer().bring(connection, machine.tree(job / "code"))
    assert names(machine.home / "jobs" / "job-1" / "code") == {"train.py"}
    (job / "state").rmdir()
    (job / "state").symlink_to(desk.home)
    with pytest.raises(NotFound):
        connection.list(str(job / "state"))


def test_data_keep_owner_mode_and_links(desk: Desk, machine: Machine) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (desk.data / "set").mkdir()
    (desk.data / "set" / "private").write_text("x")
    (desk.data / "set" / "private").chmod(0o600)
    os.chown(desk.data / "set" / "private", 4242, 4243)
    (desk.data / "set" / "latest").symlink_to("private")
    bringer = machine.bringer()
    tree = bringer.tree(str(machine.root / "data" / "set"), job_id="job-1")
    assert tree is not None
    from dataclasses import replace

    bringer.bring(machine.connect(desk.data / "set"), replace(tree, path=str(desk.data / "set")))

    facts = (machine.root / "data" / "set" / "private").stat()
    assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (4242, 4243, 0o600)
    assert os.readlink(machine.root / "data" / "set" / "latest") == "private"


@pytest.fixture
def cable(desk: Desk, machine: Machine) -> Iterator[Proxy]:
    made = Proxy(desk.port)
    machine.port = made.port
    yield made
    made.close()


def test_a_large_file_goes_on_where_it_stopped(desk: Desk, machine: Machine, cable: Proxy) -> None:
    job = desk.job()
    content = os.urandom(24 << 20)
    (job / "code" / "model.pt").write_bytes(content)
    bringer, tree = machine.bringer(), machine.tree(job / "code")
    connection = machine.connect(job / "code")
    parts: list[int] = []
    fetch = connection.fetch

    def cut(path: str, asked, place) -> None:  # type: ignore[no-untyped-def]
        def some(part, num_bytes, pieces):  # type: ignore[no-untyped-def]
            def halves():  # type: ignore[no-untyped-def]
                for number, piece in enumerate(pieces):
                    if number == 9:
                        cable.reset()
                    yield piece

            place(part, num_bytes, halves())

        fetch(path, asked, some)

    connection.fetch = cut  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="is lost"):
        bringer.bring(connection, tree)
    begun = sum(path.stat().st_size for path in (machine.home / FOLDER).rglob("*.part"))
    assert 0 < begun < len(content)

    second = machine.connect(job / "code")
    fetch = second.fetch
    second.fetch = lambda path, asked, place: (  # type: ignore[method-assign]
        parts.extend(part.offset for part in asked),
        fetch(path, asked, place),
    )[1]
    bringer.bring(second, tree)
    assert parts == [begun]
    assert (machine.home / "jobs" / "job-1" / "code" / "model.pt").read_bytes() == content


def test_a_connection_that_lost_its_server_is_known_to_be_of_no_use(desk: Desk, machine: Machine) -> None:
    job = desk.job(train="1")
    connection = machine.connect(job / "code")
    connection.list(str(job / "code"))
    assert connection.is_usable()
    desk.stop()
    until(lambda: not connection.is_usable(), "it is seen")
    desk.begin()
    machine.bringer().bring(machine.connect(job / "code"), machine.tree(job / "code"))


def test_a_machine_that_was_removed_has_no_connections_for_files(desk: Desk, machine: Machine) -> None:
    job = desk.job()
    connection = machine.connect(job / "code")
    desk.joining.remove("b")
    assert desk.hub is not None
    desk.hub.hang_up("b")  # type: ignore[arg-type]

    until(lambda: not connection.is_usable(), "it is ended")
    with pytest.raises(Unavailable):
        machine.connect(job / "code")
