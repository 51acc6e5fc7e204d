"""An adviser in a process answers as one in this process does, and its end is noticed and survived."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.process_state import has_ended
from tests.tune.adviser.played import KINDS, Kind, Played, play

from pliant.core.search import Pruner, TrialState
from pliant.tune.advice import AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser_process import AdviserProcess, AdviserProgram, own_program

ENV = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}


def open_process(opening: AdviserInput) -> AdviserProcess:
    return AdviserProcess(opening, own_program(opening, ENV))


@contextmanager
def running(played: Played, deadline_s: float | None = None) -> Iterator[AdviserProcess]:
    program = own_program(played.opening, ENV)
    adviser = AdviserProcess(played.opening, replace(program, deadline_s=deadline_s or program.deadline_s))
    try:
        yield adviser
    finally:
        adviser.close()


@pytest.mark.parametrize("name", ["tpe", "tpe-conditions", "cmaes-margin", "nsga2", "gp"])
def test_it_answers_as_an_adviser_in_this_process_does(name: str) -> None:
    kind = replace(KINDS[name], num_trials=7 if name == "gp" else 25)

    assert play(kind, open_process) == play(kind, OptunaAdviser)


def test_another_one_goes_on_where_one_was_killed() -> None:
    kind = replace(KINDS["tpe"], num_trials=24)

    assert play(kind, open_process, renewed=lambda number: number == 17) == play(kind, OptunaAdviser)


def test_it_judges_as_an_adviser_in_this_process_does() -> None:
    kind = Kind(name="random", space=KINDS["random"].space, pruner=Pruner(name="median"))
    played = Played(settings=kind.settings)
    with running(played) as adviser:
        for number in range(6):
            played.ask(adviser, list(played.trials.values()))
            played.trials[number] = replace(
                played.trials[number],
                state=TrialState.COMPLETED if number < 5 else TrialState.RUNNING,
                reports=((1, float(number)), (2, float("nan")), (3, float(10 * number))),
                results=(float(number),) if number < 5 else None,
            )
        judgement = adviser.judge(5, [played.trials[4], played.trials[5]])

    assert judgement == OptunaAdviser(played.opening).judge(5, [])


def test_a_grid_comes_to_its_end_through_the_process() -> None:
    played = Played(settings=KINDS["grid"].settings)
    with running(played) as adviser:
        while isinstance(asked := played.ask(adviser, []), Asked):
            pass

    assert len(played.trials) == 45
    assert isinstance(asked, Exhausted)


def test_one_that_is_killed_is_lost_and_stays_so() -> None:
    played = Played(settings=KINDS["random"].settings)
    with running(played) as adviser:
        played.ask(adviser, [])
        os.kill(adviser.pid, signal.SIGKILL)

        with pytest.raises(AdviserLost, match=r"the adviser's process has ended \(exit code -9\)"):
            adviser.ask(1, [])
        with pytest.raises(AdviserLost, match="the adviser has been ended; start another one"):
            adviser.ask(1, [])


def test_one_that_stands_still_is_ended_at_its_deadline() -> None:
    played = Played(settings=KINDS["random"].settings)
    with running(played, deadline_s=5.0) as adviser:
        played.ask(adviser, [])
        os.kill(adviser.pid, signal.SIGSTOP)
        adviser._program = replace(adviser._program, deadline_s=0.2)

        with pytest.raises(AdviserLost, match=r"does not answer for 0\.2 s \(exit code -9\)"):
            adviser.ask(1, [])


def test_what_the_search_is_wrong_with_is_a_failure_and_the_process_lives() -> None:
    played = Played(settings=KINDS["random"].settings)
    with running(played) as adviser:
        with pytest.raises(AdviserFailure, match="'size' is given, but no parameter is called so"):
            adviser.ask(0, [], {"size": 1})

        assert isinstance(adviser.ask(0, []), Asked)


def test_a_damaged_state_is_a_failure_at_the_first_question() -> None:
    with running(Played(settings=KINDS["random"].settings, state="{")) as adviser:
        for _ in range(2):
            with pytest.raises(AdviserFailure, match="the state of the sampler cannot be read"):
                adviser.ask(0, [])


def program(tmp_path: Path, text: str) -> AdviserProgram:
    path = tmp_path / "program.py"
    path.write_text(text)
    return AdviserProgram(command=(sys.executable, str(path)), env=ENV)


def random_opening() -> AdviserInput:
    return Played(settings=KINDS["random"].settings).opening


BEFORE = "import os, runpy, sys\n"
AFTER = "sys.argv[0] = 'x'\nrunpy.run_module('pliant.entry.adviser', run_name='__main__')\n"


def test_what_it_prints_is_in_nobodys_way(tmp_path: Path) -> None:
    noisy = program(tmp_path, f"{BEFORE}print('{{}}\\n' * 99999, flush=True)\nos.write(2, b'n' * 99999)\n{AFTER}")
    played = Played(settings=KINDS["random"].settings)
    adviser = AdviserProcess(played.opening, noisy)
    try:
        assert played.ask(adviser, []) == OptunaAdviser(Played(settings=played.settings).opening).ask(0, [])
    finally:
        adviser.close()


def test_one_that_ends_by_itself_is_lost_with_what_it_said(tmp_path: Path) -> None:
    adviser = AdviserProcess(random_opening(), program(tmp_path, "raise SystemExit('no way')"))

    with pytest.raises(AdviserLost, match=r"has ended \(exit code 1\); at last it printed: no way"):
        adviser.ask(0, [])


@pytest.mark.parametrize("line", ["{}", "not JSON", '{"kind":"judgement","prune":true,"reason":""}'])
def test_an_answer_that_is_none_is_a_lost_adviser(tmp_path: Path, line: str) -> None:
    text = f"import os, sys, time\nos.write(int(sys.argv[1]), {line!r}.encode() + b'\\n')\ntime.sleep(60)"
    adviser = AdviserProcess(random_opening(), program(tmp_path, text))

    with pytest.raises(AdviserLost, match="answers"):
        adviser.ask(0, [])


def test_a_program_that_is_not_there_is_a_lost_adviser() -> None:
    with pytest.raises(AdviserLost, match="cannot be started: No such file or directory"):
        AdviserProcess(random_opening(), AdviserProgram(command=("/no/such/program",), env=ENV))


def test_it_gets_no_secrets(tmp_path: Path) -> None:
    text = "import os, sys\nraise SystemExit(','.join(sorted(os.environ)))"
    env = {**ENV, "PLIANT_SECRET": "s", "AWS_SECRET_ACCESS_KEY": "k", "TZ": "UTC"}
    printing = replace(own_program(random_opening(), env), command=program(tmp_path, text).command)
    adviser = AdviserProcess(random_opening(), printing)

    with pytest.raises(AdviserLost) as lost:
        adviser.ask(0, [])
    assert "TZ" in str(lost.value)
    assert "SECRET" not in str(lost.value)


STARTER = """
import os, sys
from tests.process_state import has_ended
from tests.tune.adviser.played import KINDS, Played
from pliant.tune.adviser_process import AdviserProcess, own_program
opening = Played(settings=KINDS["gp"].settings).opening
adviser = AdviserProcess(opening, own_program(opening, os.environ))
adviser.ask(0, [])
os.write(int(sys.argv[1]), str(adviser.pid).encode() + b"\\n")
os.kill(os.getpid(), 9)
"""


def test_it_ends_when_who_started_it_is_killed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.set_inheritable(theirs.fileno(), True)
        env = {**ENV, "PYTHONPATH": str(Path(__file__).parents[2])}
        os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", STARTER, str(theirs.fileno())], env)
        pid = int(ours.recv(100))

    assert eventually(lambda: has_ended(pid))


def eventually(holds: Callable[[], bool]) -> bool:
    """Tell whether something comes to hold within a few seconds."""
    deadline = time.monotonic() + 10
    while not (reached := holds()) and time.monotonic() < deadline:
        os.sched_yield()
    return reached


def test_it_tells_how_important_parameters_are() -> None:
    played = Played(settings=KINDS["random"].settings)
    adviser = OptunaAdviser(played.opening)
    for number in range(12):
        played.ask(adviser, [] if number == 0 else [played.end(number - 1)])
    played.end(11)

    with running(played) as process:
        found = process.importances()
        # on some processors the last bit is another one in another process, where other libraries are loaded
        assert found == pytest.approx(OptunaAdviser(played.opening).importances(), rel=1e-12)
        assert found != {}
