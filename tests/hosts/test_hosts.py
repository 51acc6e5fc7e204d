"""Hosts on one machine: what they see, how they die and come back, and that nothing of them stays."""

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hosts import Host, Network, available, require_hosts
from tests.hosts.conftest import SILENCE_S, answer, hears_nothing, require_reach, stream, until
from tests.process_state import has_ended, state_of

ROOT = Path(__file__).parents[2]
LEFT_ALONE = """
import os, sys, time
from tests.hosts import Network
with Network() as network:
    frozen, late = network.add("frozen"), network.add("late")
    frozen.popen(["sh", "-c", "setsid sleep 1000 & exec sleep 1000"])
    frozen.freeze()
    network.delay(late, 0.01)
    late.popen(["setsid", "--fork", "sleep", "1000"]).wait()
    if forked := os.fork():  # it has all that is open here
        print(forked, flush=True)
    time.sleep(1000)
"""


def running_with(mark: str) -> list[int]:
    """Return the processes with this in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What is in the environment of all processes that this test starts."""
    mark = f"PLIANT_TEST_MARK={secrets.token_hex(8)}"
    monkeypatch.setenv(*mark.split("="))
    return mark


def test_hosts_reach_each_other_by_address_and_by_name(answering: Callable[[str], Host]) -> None:
    a, b = answering("a"), answering("b")

    require_reach(a, b)
    require_reach(a, a)
    b.run([sys.executable, "-c", "import socket; socket.create_connection(('a', 7)).close()"])


def test_a_host_has_its_own_processes_names_and_memory_but_the_files_of_the_machine(
    network: Network, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    host = network.add("some-host", shm="2m", tmpfs={str(tmp_path / "small"): "1m"})
    (tmp_path / "from-outside").write_text("hello")

    assert host.run(["hostname"]).stdout == "some-host\n"
    assert host.run(["cat", "from-outside"], cwd=tmp_path).stdout == "hello"
    assert host.run(["id", "-u"]).stdout.strip() == str(os.geteuid())
    assert len([name for name in host.run(["ls", "/proc"]).stdout.split() if name.isdigit()]) == 2
    assert host.run(["stat", "-f", "-c", "%b %S", "/dev/shm"]).stdout == "512 4096\n"
    full = host.run(["dd", "if=/dev/zero", "of=small/file", "bs=1M", "count=2"], cwd=tmp_path, check=False)
    assert full.returncode == 1
    assert "No space left" in full.stderr
    host.run(["touch", tmp_path / "from-inside"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from-inside", "from-outside", "small"]
    assert list((tmp_path / "small").iterdir()) == []


def test_a_process_has_the_environment_folder_and_output_that_it_is_given(network: Network, tmp_path: Path) -> None:
    host = network.add("a")
    script = "pwd; echo $WORD >&2; cat; exit 7"

    process = host.popen(["/bin/sh", "-c", script], env={"WORD": "yes"}, cwd=tmp_path, output=tmp_path / "output")

    assert process.wait() == process.poll() == 7
    assert (tmp_path / "output").read_text() == f"{tmp_path}\nyes\n"
    assert host.run(["cat"], stdin="said").stdout == "said"
    with pytest.raises(RuntimeError, match="no-such-folder"):
        host.run(["ls", "/no-such-folder"])
    with pytest.raises(OSError, match=r"No such file or directory: .*no-such-program"):
        host.popen(["no-such-program"])
    with pytest.raises(TimeoutError, match=r"still runs after 0\.01 s"):
        host.run(["sleep", "1000"], timeout_s=0.01)


def test_a_process_is_known_by_its_number_out_here_and_can_be_signalled(network: Network) -> None:
    host = network.add("a")
    process = host.popen(["sleep", "1000"])

    assert Path(f"/proc/{process.pid}/cmdline").read_bytes() == b"sleep\x001000\x00"
    (numbers,) = re.findall(r"^NSpid:(.*)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    assert host.number_outside(int(numbers.split()[-1])) == process.pid
    with pytest.raises(ProcessLookupError, match="host a has no process 4000000"):
        host.number_outside(4_000_000)
    assert process.poll() is None
    process.kill(signal.SIGTERM)

    assert process.wait() == -signal.SIGTERM
    process.kill()


def test_what_a_thread_opens_inside_a_host_is_that_hosts(network: Network, answering: Callable[[str], Host]) -> None:
    a = answering("a")
    outside = os.readlink("/proc/thread-self/ns/net")

    with a.inside():
        assert os.readlink("/proc/thread-self/ns/net") != outside
        connection = socket.create_connection(("127.0.0.1", 7))

    assert os.readlink("/proc/thread-self/ns/net") == outside
    with connection:
        connection.sendall(b"still")
        assert connection.recv(100) == b"still"


def test_kill_ends_all_processes_of_a_host_whatever_session_they_are_in(network: Network, mark: str) -> None:
    a, b = network.add("a"), network.add("b")
    before = set(running_with(mark))
    first = a.popen(["sh", "-c", "setsid sleep 1000 & setsid setsid sleep 1000 & exec sleep 1000"])
    other = b.popen(["sleep", "1000"])
    until(lambda: len(set(running_with(mark)) - before) == 4, "all are there")

    a.kill()

    assert first.wait() == -signal.SIGKILL
    assert set(running_with(mark)) - before == {other.pid}
    assert not a.is_up
    with pytest.raises(RuntimeError, match="host a was killed; restart it first"):
        a.run(["true"])


@pytest.mark.slow
def test_the_others_notice_a_kill_but_not_a_silent_one(answering: Callable[[str], Host], tmp_path: Path) -> None:
    a, b = answering("a"), answering("b")
    with stream(b, a.address) as connection:
        connection.sendall(b"there?")
        assert connection.recv(100) == b"there?"
        a.kill()
        assert connection.recv(100) == b""

    a.restart()
    answer(a, tmp_path)
    with stream(b, a.address) as connection:
        a.kill(silently=True)
        connection.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            connection.recv(100)
    assert hears_nothing(b, a)


@pytest.mark.slow
def test_a_frozen_host_computes_nothing_and_goes_on_when_it_is_thawed(
    network: Network, answering: Callable[[str], Host], mark: str, tmp_path: Path
) -> None:
    a, b = network.add("a"), answering("b")
    others = set(running_with(mark))
    answer(a, tmp_path)
    stopped_before = a.popen(["sleep", "1000"])
    stopped_before.kill(signal.SIGSTOP)
    until(lambda: state_of(stopped_before.pid) == "T", "one is stopped")
    a.popen(["sh", "-c", "while :; do setsid true; done"])

    a.freeze()

    states = {state_of(pid) for pid in set(running_with(mark)) - others}
    assert "T" in states
    assert states <= set("TDZX"), "D: in a call of the kernel, after which it stops; Z, X: ended"
    assert hears_nothing(b, a)
    with stream(b, a.address) as connection:  # its kernel accepts
        connection.sendall(b"later")
        a.thaw()
        assert connection.recv(100) == b"later"
    require_reach(b, a)
    assert state_of(stopped_before.pid) == "T"
    a.freeze()
    a.kill()
    assert has_ended(stopped_before.pid)


@pytest.mark.slow
def test_a_host_comes_back_with_its_address_and_with_nothing_that_it_had(
    network: Network, answering: Callable[[str], Host], tmp_path: Path
) -> None:
    a, b = answering("a"), answering("b")
    addresses = (a.address, a.address6)
    a.run(["touch", "/dev/shm/file"])
    cut = network.cut(a)

    a.restart()

    assert (a.address, a.address6) == addresses
    assert a.run(["ls", "/dev/shm"]).stdout == ""
    answer(a, tmp_path)
    assert hears_nothing(b, a)  # what was wrong with its port still is
    cut.heal()
    require_reach(b, a)


def test_networks_side_by_side_do_not_meet(network: Network, answering: Callable[[str], Host]) -> None:
    a = answering("a")
    answering("b")

    with Network() as other:
        same, lonely = other.add("a"), other.add("b")
        assert (same.address, lonely.address6) == (a.address, "fd00:d5::2")
        assert hears_nothing(same, lonely)
        with pytest.raises(ValueError, match="no host can be called 'a' here"):
            other.add("a")
    with pytest.raises(RuntimeError, match="use it in a `with` block"):
        other.add("c")


def test_nothing_is_seen_outside_and_nothing_stays(mark: str) -> None:
    def seen() -> tuple[str, str, str, set[str]]:
        links = subprocess.run(["ip", "-brief", "address"], capture_output=True, text=True, check=True).stdout
        names = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
        return links, names, Path("/proc/self/mountinfo").read_text(), set(os.listdir("/proc/self/fd"))

    require_hosts()
    before = seen()
    with Network() as network:
        hosts = [network.add(name) for name in ("a", "b")]
        network.delay(hosts[0], 0.01)
        network.lose(hosts[1], 0.1)
        hosts[0].popen(["setsid", "--fork", "sleep", "1000"])
        hosts[1].popen(["sleep", "1000"])
        hosts[1].freeze()
        during = seen()
        assert len(running_with(mark)) > 4

    assert during[:3] == seen()[:3] == before[:3]
    assert seen()[3] == before[3]
    assert running_with(mark) == []


def test_nothing_stays_of_a_test_that_was_killed(mark: str) -> None:
    require_hosts()
    with subprocess.Popen([sys.executable, "-c", LEFT_ALONE], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        assert len(running_with(mark)) > 8

        process.kill()
        try:
            until(lambda: running_with(mark) == [forked], "all have ended")
        finally:
            os.kill(forked, signal.SIGKILL)
    until(lambda: running_with(mark) == [], "that one has ended, too")


def test_where_no_hosts_can_be_had_tests_are_skipped_and_fail_in_ci(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    available.cache_clear()
    try:
        with monkeypatch.context() as without:
            without.setenv("PATH", str(tmp_path))
            without.delenv("CI", raising=False)
            with pytest.raises(pytest.skip.Exception, match="no ip, tc, unshare here; on Debian: sudo apt-get install"):
                require_hosts()
            without.setenv("CI", "true")
            with pytest.raises(pytest.fail.Exception, match="no ip, tc, unshare here"):
                require_hosts()
    finally:
        available.cache_clear()
