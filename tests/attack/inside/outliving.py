"""Starts processes that mean to outlive their job, each a `sleep` for a number of seconds that tells it from others."""

import os
import signal
import subprocess

from probe import Facts, play, probe


def sleep(facts: Facts, number: int) -> list[str]:
    return ["sleep", f"{facts['seconds']}.{number}"]


@probe("a child")
def child(facts: Facts) -> str:
    subprocess.Popen(sleep(facts, 1))
    return "begun"


@probe("a session of its own")
def session(facts: Facts) -> str:
    subprocess.Popen(sleep(facts, 2), start_new_session=True)
    return "begun"


@probe("two forks")
def two_forks(facts: Facts) -> str:
    if (first := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", sleep(facts, 3))
        os._exit(0)
    os.waitpid(first, 0)
    return "begun"


@probe("two forks and no environment")
def nothing_left(facts: Facts) -> str:
    if (first := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3, 256):
                try:
                    os.close(number)
                except OSError:
                    continue
            os.chdir("/")
            os.execvpe("sleep", sleep(facts, 4), {"PATH": "/usr/bin:/bin"})
        os._exit(0)
    os.waitpid(first, 0)
    return "begun"


@probe("a process that stands still")
def stopped(facts: Facts) -> str:
    process = subprocess.Popen(sleep(facts, 5), start_new_session=True)
    process.send_signal(signal.SIGSTOP)
    return "begun"


@probe("a process that hears no signal")
def deaf(facts: Facts) -> str:
    subprocess.Popen(["nohup", *sleep(facts, 6)], start_new_session=True, stderr=subprocess.DEVNULL)
    return "begun"


play()
