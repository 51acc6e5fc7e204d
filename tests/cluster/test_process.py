"""A process is never taken for another one that had or will have its number."""

import os
import signal
import subprocess
import sys
import threading

from pliant.cluster import process


def test_a_stamp_stays_the_same_until_the_process_ends() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    stamp = process.stamp(child.pid)
    assert stamp is not None
    assert process.stamp(child.pid) == stamp
    assert stamp != process.stamp(os.getpid())

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.stamp(child.pid) is None, "a zombie has ended"
    child.wait()
    assert process.stamp(child.pid) is None


def test_a_process_is_opened_only_under_its_own_stamp() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    stamp = process.stamp(child.pid)
    assert process.open_process(child.pid, "another boot/1") is None

    pidfd = process.open_process(child.pid, stamp)
    assert pidfd is not None
    process.send_signal(pidfd, signal.SIGTERM)
    assert child.wait(10) == -signal.SIGTERM
    process.send_signal(pidfd, signal.SIGTERM)
    os.close(pidfd)
    assert process.open_process(child.pid, stamp) is None


def test_a_number_that_a_thread_has_by_now_is_no_process() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        assert process.open_process(thread.native_id, process.stamp(os.getpid())) is None
    finally:
        over.set()
        thread.join()


def test_a_session_is_swept_only_after_its_leader_has_ended() -> None:
    source = "import subprocess, sys; print(subprocess.Popen(['sleep', '1000']).pid, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", source], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as leader:
        assert leader.stdout is not None
        left = int(leader.stdout.readline())

        process.sweep_session(leader.pid)
        assert process.stamp(left) is not None

        leader.kill()
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        process.sweep_session(leader.pid)
        assert process.stamp(left) is None
        leader.stdout.close()
