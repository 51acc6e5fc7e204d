"""An algorithm in its process: it answers as in this one, and the server survives all that its code does and says."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.process_state import has_ended
from tests.tune.adviser.played import NUMBERS, Kind, Played, play
from tests.tune.plugins.ibm.samples import KEPT, SHARED, answering

from pliant.catalog.children.supervisor import supervised
from pliant.core.search import Pruner
from pliant.core.space import SearchParameter
from pliant.tune.advice import AdviserFailure, AdviserInput, AdviserLost, Asked
from pliant.tune.adviser_process import AdviserProgram
from pliant.tune.plugins.found_code import FoundCode, decode_found
from pliant.tune.plugins.ibm.ibm_adviser import IbmAdviser
from pliant.tune.plugins.plugin_adviser import PluginAdviser

FolderOf = Callable[..., Path]
ENV = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
LR: Mapping[str, SearchParameter] = {"lr": SearchParameter(kind="float", low=0.0, high=1.0)}


def program(folder: Path, kind: str = "ibm", printed: Callable[[bytes], None] | None = None) -> AdviserProgram:
    return AdviserProgram(
        command=(sys.executable, "-P", "-m", "pliant.entry.plugin", kind, str(folder)),
        env=ENV,
        cwd=str(folder),
        deadline_s=30.0,
        called="the algorithm my-search",
        printed=printed,
    )


def played() -> Played:
    return Played(settings=Kind(name="random", space=LR).settings)


@contextmanager
def running(opening: AdviserInput, run: AdviserProgram) -> Iterator[PluginAdviser]:
    adviser = PluginAdviser(opening, run)
    try:
        yield adviser
    finally:
        adviser.close()


def ask_within(adviser: PluginAdviser, deadline_s: float) -> None:
    """Ask with another deadline than that in which the process has to start."""
    adviser._process._program = replace(adviser._process._program, deadline_s=deadline_s)
    adviser.ask(1, [])


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not (reached := holds()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return reached


@pytest.mark.parametrize("code", [SHARED, KEPT], ids=["shared", "kept"])
def test_it_answers_as_in_this_process_and_another_one_goes_on(folder_of: FolderOf, code: str) -> None:
    kind, folder = Kind(name="random", space=NUMBERS, num_trials=9), folder_of(code)

    in_processes = play(kind, lambda opening: PluginAdviser(opening, program(folder)), renewed=lambda n: n == 5)
    assert in_processes == play(kind, lambda opening: IbmAdviser(opening, folder))


BUSY = """
import os, sys, threading
def noise():
    while True:
        os.write(2, b"n" * 4096)
def busy():
    print("first")
    for _ in range(64):
        os.write(1, b"x" * (1 << 20))
    sys.stdout.close()
    os.close(1)
    threading.Thread(target=noise, daemon=True).start()
    return [{"lr": 0.5}]
"""


def test_what_it_prints_goes_where_it_is_looked_at_and_stops_nothing(folder_of: FolderOf) -> None:
    begun, num_bytes, search = b"", 0, played()

    def note(chunk: bytes) -> None:
        nonlocal begun, num_bytes
        begun, num_bytes = (begun + chunk)[:300], num_bytes + len(chunk)

    code = answering("busy()", f"{BUSY}\nfrom plugins.core.logger import logger\nlogger.info('made %s', 1)")
    with running(search.opening, program(folder_of(code), printed=note)) as adviser:
        assert search.ask(adviser, []) == Asked(values={"lr": 0.5}, state=search.state)
        with pytest.raises(AdviserFailure, match=r"raised ValueError: I/O operation on closed file\. in search"):
            adviser.ask(1, [])

    assert b"INFO made 1" in begun
    assert b"first" in begun or num_bytes > 64 << 20
    assert num_bytes >= 64 << 20


HANGS = """
import os, time
pids = []
def hangs():
    if pids:
        time.sleep(1000)
    pids.append(os.fork())
    if not pids[0]:
        time.sleep(1000)
    print(f"child {pids[0]}", flush=True)
    return [{"lr": 0.5}]
"""


def test_one_that_hangs_is_ended_at_its_deadline_with_what_it_has_started(folder_of: FolderOf) -> None:
    printed: list[bytes] = []
    with running(played().opening, program(folder_of(answering("hangs()", HANGS)), printed=printed.append)) as adviser:
        adviser.ask(0, [])
        with pytest.raises(AdviserLost, match=r"^the algorithm my-search does not answer for 0\.2 s \(exit code -9\)"):
            ask_within(adviser, 0.2)

    child = int(b"".join(printed).split()[-1])
    assert eventually(lambda: has_ended(child))


def test_its_end_is_noticed_though_what_it_has_started_has_its_socket(folder_of: FolderOf) -> None:
    code = answering("hangs() if not pids else os._exit(7)", HANGS)
    with running(played().opening, program(folder_of(code))) as adviser:
        adviser.ask(0, [])
        begun = time.monotonic()
        with pytest.raises(
            AdviserLost, match=r"^the algorithm my-search has ended \(exit code 7\); at last it printed:"
        ):
            adviser.ask(1, [])

    assert time.monotonic() - begun < 10.0


def test_it_ends_with_the_server_whatever_it_does(folder_of: FolderOf) -> None:
    code = answering("hangs()", HANGS.replace("if pids:", "if pids:\n        os.close(0)"))
    with running(played().opening, program(folder_of(code))) as adviser:
        adviser.ask(0, [])
        server_end = adviser._process._process.stdin
        assert server_end is not None
        threading.Timer(0.1, server_end.close).start()
        with pytest.raises(AdviserLost, match=r"has ended \(exit code 3\)"):
            adviser.ask(1, [])


LEAVES = """
import os, socket, sys, time
ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(theirs, str(os.getpid()).encode())
        time.sleep(1000)
    os._exit(0)
print(os.read(ours, 20).decode(), flush=True)
socket.socket(fileno=int(sys.argv[1])).sendall(LINE)
sys.stdin.read()
"""


def test_a_supervisor_has_time_to_end_what_has_left_the_group(tmp_path: Path) -> None:
    printed: list[bytes] = []
    path = tmp_path / "program.py"
    path.write_text(LEAVES.replace("LINE", values_answer()))
    command = supervised([sys.executable, "-I", "-S", str(path)], niceness=0)
    run = replace(program(tmp_path, printed=printed.append), command=command, end_s=20.0)
    with running(played().opening, run) as adviser:
        assert adviser.ask(0, []) == Asked(values={"lr": 0.5}, state="{}")

    assert has_ended(int(b"".join(printed)))


LIMITED = """
def limited():
    bytearray(5 << 30)
"""


def test_it_has_limits_and_a_search_that_it_fails_with_one_sentence(folder_of: FolderOf) -> None:
    with running(played().opening, program(folder_of(answering("limited()", LIMITED)))) as adviser:
        with pytest.raises(
            AdviserFailure, match=r"^the algorithm random raised MemoryError in search \(optimizer\.py:6\)$"
        ):
            adviser.ask(0, [])
        with pytest.raises(AdviserFailure, match="judges no trials, so not 0"):
            adviser.judge(0, [])


CLOSES = "import os, time\ndef close(then):\n    os.closerange(0, 4096)\n    time.sleep(then)\n    return [{'lr': 1}]"


@pytest.mark.parametrize("then", [0, 600], ids=["ends", "lives-on"])
def test_one_that_closes_its_descriptors_is_lost(folder_of: FolderOf, then: int) -> None:
    run = program(folder_of(answering(f"close({then})", CLOSES)))
    with running(played().opening, run) as adviser:
        with pytest.raises(AdviserLost, match="the algorithm my-search has ended"):
            adviser.ask(0, [])
        assert has_ended(adviser.pid)


def saying(folder: Path, line: str) -> AdviserProgram:
    """Return a program that says a line, whatever it is asked."""
    path = folder / "program.py"
    path.write_text(f"import socket,sys\nsocket.socket(fileno=int(sys.argv[1])).sendall({line})\nsys.stdin.read()")
    return replace(program(folder), command=(sys.executable, "-I", "-S", str(path)), deadline_s=5.0)


def values_answer(**other: Any) -> str:
    """Return the expression of the line of an answer, but for what is other."""
    answer = {"kind": "values", "values": {"lr": 0.5}, "state": "{}", "attributes": {}, **other}
    return repr(json.dumps(answer).encode() + b"\n")


LINES = [
    (values_answer(), ""),
    (values_answer(values={"lr": 7}), "answers with values that cannot be: lr: 7 is not from 0 to 1"),
    (values_answer(values={}), "lr: a value is missing"),
    (values_answer(values={"lr": float("nan")}), "NaN is not from 0 to 1"),
    (values_answer(values={"lr": "\x00\x1b[2J" * 99}), "is no number"),
    (values_answer(values={"lr": 0.5, "x\n" * 500: 1}), "there is no parameter"),
    (values_answer(values={"lr": 10**400}), "000… is not from 0 to 1"),
    (values_answer(state="a\x00b"), "answers with a state that cannot be kept, of 3 characters"),
    (values_answer(state="ä"), "answers with a state that cannot be kept"),
    (values_answer(state="x" * (9 << 20)), "answers with a state that cannot be kept, of 9,437,184 characters"),
    (values_answer(attributes={-1: {}}), "notes something with a trial that is not there"),
    (values_answer(attributes={0: {"a": float("nan")}}), "notes with a trial what cannot be kept"),
    (values_answer(attributes={0: {"a": "\x00"}}), "of text"),
    (values_answer(attributes={0: {"a": "x" * (2 << 20)}}), "notes 2,097,"),
    ('b\'{"kind":"values","values":{},"state":"\\\\ud800"}\\n\'', "answers with no message"),
    ("b'[' * 1000000 + b'\\n'", "answers with no message"),
    ('b\'{"kind":"values","attributes":{"0":\' + b\'{"a":\' * 10000 + b\'\\n\'', "answers with no message"),
    ("b'\\xff\\xfe\\x00\\n'", "answers with no message"),
    ("b'9' * 100000 + b'\\n'", "answers with no message"),
    ("b'x' * (13 << 20)", "answers with more than 12582912 bytes"),
    ("b'{}\\n{}\\n'", "answers with no message"),
    ('b\'{"kind":"judgement","prune":true,"reason":""}\\n\'', "with another one's answer, judgement"),
    ('b\'{"kind":"failure","message":"a\\\\n\\\\u0000b"}\\n\'', "a \ufffdb"),
]


@pytest.mark.parametrize(("line", "message"), LINES, ids=[f"{i}: {said}"[:50] for i, (_, said) in enumerate(LINES)])
def test_whatever_comes_through_its_socket_is_an_answer_or_one_sentence(
    tmp_path: Path, line: str, message: str
) -> None:
    with running(played().opening, saying(tmp_path, line)) as adviser:
        if not message:
            assert adviser.ask(0, []) == Asked(values={"lr": 0.5}, state="{}")
            return
        with pytest.raises((AdviserFailure, AdviserLost)) as raised:
            adviser.ask(0, [])

    text = str(raised.value)
    assert message in text
    assert len(text) <= 2001
    assert text.isprintable()


def test_the_end_of_a_search_is_one_line_of_text(tmp_path: Path) -> None:
    line = json.dumps({"kind": "exhausted", "reason": "no\nmore\x00" * 100}).encode() + b"\n"
    with running(played().opening, saying(tmp_path, repr(line))) as adviser:
        reason = str(adviser.ask(0, []))

    assert "no more\ufffd" in reason
    assert len(reason) < 400


def checked(folder: Path, kind: str = "ibm") -> FoundCode:
    """Return what a check says, whose standard input stays open as long as this process lives."""
    command, pipe = [*program(folder, kind).command, "--check"], subprocess.PIPE
    with subprocess.Popen(command, env=ENV, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        return decode_found(process.stdout.read())


def test_code_is_looked_at_without_a_search_whatever_it_prints(folder_of: FolderOf) -> None:
    good = folder_of(f"print('{{}}')\nimport os\nos.write(1, b'{{}}')\n{KEPT}")

    assert checked(good) == FoundCode(name="PluginOptimizer", has_state=True)
    assert checked(folder_of("class PluginOptimizer: pass")).problem == (
        "optimizer.py of the algorithm has no class PluginOptimizer(BasePluginOptimizer), from "
        "plugins.core.base_plugin_opt; write it"
    )


def test_ibms_plug_ins_do_without_optuna_and_databases(folder_of: FolderOf) -> None:
    code = answering(
        "[{'lr': 0.1}]", "import sys\nassert not {'optuna', 'sqlalchemy', 'torch', 'scipy'} & {*sys.modules}"
    )

    assert checked(folder_of(code)).problem == ""


@pytest.mark.parametrize("line", [b"", b"{}", b"[" * 9999, b"\xff", b'{"problem": 1, "class": "", "has_state": true}'])
def test_what_does_not_say_what_code_is_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="does not say what code is"):
        decode_found(line)


def test_a_pruner_is_refused_by_the_process(folder_of: FolderOf) -> None:
    search = played()
    opening = replace(search.opening, settings=replace(search.settings, pruner=Pruner(name="median")))
    with (
        running(opening, program(folder_of(KEPT))) as adviser,
        pytest.raises(AdviserFailure, match="judges no trials; leave the pruner out, or give halving"),
    ):
        adviser.ask(0, [])
