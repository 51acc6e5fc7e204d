"""What a machine fetches is there whole, once, with modes, times and links, and as nobody else left it."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.joined.proxy import Proxy
from tests.cluster.mirror.conftest import Keeper, Machine
from tests.contracts.process_stage import until

from pliant.cluster.mirror.bringing import newest_alone
from pliant.cluster.mirror.connection import FileConnection, Place
from pliant.cluster.mirror.content import FOLDER
from pliant.cluster.mirror.messages import FilePart
from pliant.core.errors import Conflict, NotFound, Unavailable
from pliant.serve.gateway.kernel_socket import open_kernel_socket


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def watch(
    connection: FileConnection, patch: pytest.MonkeyPatch, *, meanwhile: Callable[[int], None] = lambda _number: None
) -> list[FilePart]:
    """Return what is fetched by a connection from now on; `meanwhile` is called with the number of each piece."""
    fetched: list[FilePart] = []
    fetch = connection.fetch

    def watched(path: str, parts: Sequence[FilePart], place: Place) -> None:
        def numbered(pieces: Iterator[bytes]) -> Iterator[bytes]:
            for number, piece in enumerate(pieces):
                meanwhile(number)
                yield piece

        fetched.extend(parts)
        fetch(path, parts, lambda part, num_bytes, pieces: place(part, num_bytes, numbered(pieces)))

    patch.setattr(connection, "fetch", watched)
    return fetched


def test_the_code_of_a_job_is_here_with_modes_times_and_empty_folders(keeper: Keeper, machine: Machine) -> None:
    job = keeper.job(train="import torch\n")
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


def test_what_is_here_already_is_not_fetched_again_and_what_is_alike_comes_once(
    keeper: Keeper, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = keeper.job(a="x" * 5000, b="x" * 5000)
    bringer, tree, connection = machine.bringer(), machine.tree(job / "code"), machine.connect(job / "code")
    fetched = watch(connection, monkeypatch)
    bringer.bring(connection, tree)
    assert len(fetched) == 1
    bringer.bring(connection, tree)
    (job / "code" / "c.py").write_text("new")
    bringer.bring(connection, tree)
    assert [part.name for part in fetched[1:]] == ["c.py"]


def test_a_folder_of_the_servers_own_that_has_not_changed_costs_one_question(keeper: Keeper, machine: Machine) -> None:
    environment = keeper.home / "environments" / "abc"
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


def test_what_was_left_here_and_is_not_the_servers_is_gone(keeper: Keeper, machine: Machine) -> None:
    job = keeper.job(train="1")
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


def test_a_socket_at_which_somebody_of_this_machine_listens_stays_in_what_is_the_servers(
    keeper: Keeper, machine: Machine
) -> None:
    address, here = keeper.home / "address", machine.home / "address"
    (address / "server.json").write_text("{}")
    here.mkdir(parents=True)
    (here / "gateway-1.kernels.json").write_text("{}")
    with closing(open_kernel_socket(here, 1)):
        machine.bringer().bring(machine.connect(address), machine.tree(address, is_own=True))
        assert names(here) == {"server.json", "gateway-1"}
        assert (here / "gateway-1").is_socket()


def test_what_is_just_being_written_or_asked_stays_and_of_checkpoints_the_newest_comes(
    keeper: Keeper, machine: Machine
) -> None:
    job = keeper.job()
    for step in (7, 100, 21):
        (job / "result" / f"step-{step:012d}.ckpt").write_text(str(step))
    here = machine.home / "jobs" / "job-1" / "result"
    here.mkdir(parents=True)
    for name in (".ask-bring-12-0", ".step-000000000150.ckpt.12.13", "step-000000000150.ckpt"):
        (here / name).write_text("")

    machine.bringer().bring(machine.connect(), machine.tree(job / "result"), choose=newest_alone)

    assert names(here) == {".ask-bring-12-0", ".step-000000000150.ckpt.12.13", "step-000000000100.ckpt"}


def test_no_link_that_was_left_here_leads_a_file_elsewhere(keeper: Keeper, machine: Machine, tmp_path: Path) -> None:
    job = keeper.job()
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


def test_only_what_the_order_names_may_be_read(keeper: Keeper, machine: Machine) -> None:
    job, other = keeper.job(), keeper.job("job-2", secret="2")
    (keeper.home / "token").write_text("admin")
    connection = machine.connect(job / "code")

    for path in (
        other / "code",
        keeper.home,
        keeper.home / "token",
        keeper.home / "tls",
        Path("/etc"),
        job / "code/../../..",
    ):
        with pytest.raises(Conflict, match=r"was not named by this task's order|is no whole path"):
            connection.list(str(path))
    assert connection.list(str(job / "result"))[1] == (), "the folders of its own job are its own"
    assert connection.list(str(keeper.home / "address"))[1] == (), "where the server is, is no secret"


def test_a_ticket_that_is_not_the_servers_own_and_a_task_that_is_not_there_are_refused(
    keeper: Keeper, machine: Machine
) -> None:
    keeper.job()
    other = keeper.machine("c")
    keeper.living["c", "job-2.1"] = "job-2"
    with pytest.raises(NotFound, match=r"no task 'job-2\.1' lives on b"):
        machine.connect(keeper.home / "token", task="job-2.1")
    name, machine.name = machine.name, other.name  # the ticket is another machine's
    with pytest.raises(Conflict, match="is none of this server's"):
        machine.connect(keeper.home / "token")
    machine.name = name


def test_what_tasks_put_into_the_way_is_not_handed_out(keeper: Keeper, machine: Machine) -> None:
    job = keeper.job(train="1")
    (keeper.home / "token").write_text("admin")
    (job / "code" / "link").symlink_to(keeper.home / "token")
    os.link(keeper.home / "token", job / "code" / "twin")
    os.mkfifo(job / "code" / "pipe")
    connection = machine.connect(job / "code")

    listed = connection.list(str(job / "code"))[1]
    assert listed is not None
    assert {entry.name for entry in listed if entry.is_file} == {"train.py"}
    machine.bringer().bring(connection, machine.tree(job / "code"))
    assert names(machine.home / "jobs" / "job-1" / "code") == {"train.py"}
    (job / "state").rmdir()
    (job / "state").symlink_to(keeper.home)
    with pytest.raises(NotFound):
        connection.list(str(job / "state"))


def test_data_keep_owner_mode_and_links(keeper: Keeper, machine: Machine) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (keeper.data / "bens" / "set").mkdir(parents=True)
    (keeper.data / "bens").chmod(0o700)
    os.chown(keeper.data / "bens", 4242, 4243)
    (keeper.data / "bens" / "set").chmod(0o750)
    (keeper.data / "bens" / "set" / "private").write_text("x")
    (keeper.data / "bens" / "set" / "private").chmod(0o600)
    os.chown(keeper.data / "bens" / "set" / "private", 4242, 4243)
    (keeper.data / "bens" / "set" / "latest").symlink_to("private")
    bringer = machine.bringer()
    tree = bringer.tree(str(machine.root / "data" / "bens" / "set"), job_id="job-1")
    assert tree is not None
    bringer.bring(machine.connect(keeper.data / "bens" / "set"), replace(tree, path=str(keeper.data / "bens" / "set")))

    facts = (machine.root / "data" / "bens" / "set" / "private").stat()
    assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (4242, 4243, 0o600)
    assert os.readlink(machine.root / "data" / "bens" / "set" / "latest") == "private"
    for name, expected in (("bens", (4242, 4243, 0o700)), ("bens/set", (0, 0, 0o750))):
        facts = (machine.root / "data" / name).stat()
        assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == expected, "nobody passes who could not"


@pytest.fixture
def cable(keeper: Keeper, machine: Machine) -> Iterator[Proxy]:
    made = Proxy(keeper.port)
    machine.port = made.port
    yield made
    made.close()


def test_a_large_file_goes_on_where_it_stopped(
    keeper: Keeper, machine: Machine, cable: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = keeper.job()
    content = os.urandom(24 << 20)
    (job / "code" / "model.pt").write_bytes(content)
    bringer, tree = machine.bringer(), machine.tree(job / "code")
    connection = machine.connect(job / "code")
    watch(connection, monkeypatch, meanwhile=lambda number: cable.reset() if number == 9 else None)
    with pytest.raises(Unavailable, match="is lost"):
        bringer.bring(connection, tree)
    begun = sum(path.stat().st_size for path in (machine.home / FOLDER).rglob("*.part"))
    assert 0 < begun < len(content)

    second = machine.connect(job / "code")
    fetched = watch(second, monkeypatch)
    bringer.bring(second, tree)
    assert [part.offset for part in fetched] == [begun]
    assert (machine.home / "jobs" / "job-1" / "code" / "model.pt").read_bytes() == content


def test_a_connection_that_lost_its_server_is_known_to_be_of_no_use(keeper: Keeper, machine: Machine) -> None:
    job = keeper.job(train="1")
    connection = machine.connect(job / "code")
    connection.list(str(job / "code"))
    assert connection.is_usable()
    keeper.stop()
    until(lambda: not connection.is_usable(), "it is seen")
    keeper.begin()
    machine.bringer().bring(machine.connect(job / "code"), machine.tree(job / "code"))


def test_a_machine_that_was_removed_has_no_connections_for_files(keeper: Keeper, machine: Machine) -> None:
    job = keeper.job()
    connection = machine.connect(job / "code")
    keeper.joining.remove("b")
    assert keeper.hub is not None
    keeper.hub.hang_up("b")  # type: ignore[arg-type]

    until(lambda: not connection.is_usable(), "it is ended")
    with pytest.raises(Unavailable):
        machine.connect(job / "code")
