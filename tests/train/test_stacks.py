"""Where the threads of a process are, in words."""

import re
import runpy
import threading
from pathlib import Path

from pliant.train.stacks import MAX_CHARS, main_line, stacks


def asked_beside(act: object) -> tuple[str, str]:
    """Return what another thread learns while this one waits for it."""
    found: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: found.append((stacks(), main_line())))
    thread.start()
    thread.join()
    return found[0]


def test_the_main_thread_comes_first_and_is_where_the_script_is(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def work():\n    global found\n    found = ask(None)\n\nwork()\n")
    text, line = runpy.run_path(str(script), {"ask": asked_beside})["found"]
    assert re.fullmatch(r"test_stacks\.py:\d+ in asked_beside", line)
    lines = text.splitlines()
    assert lines[0] == "Thread MainThread:"
    assert lines[1] == f'  File "{script}", line 5, in <module>'
    assert "  work()" in lines[2]


def test_threads_of_the_script_come_before_ours_and_begin_with_their_own_code() -> None:
    go_on = threading.Event()
    names = ("pliant-link", "loads data")
    threads = [threading.Thread(target=lambda: go_on.wait(), name=name) for name in names]
    for thread in threads:
        thread.start()
    text, _ = asked_beside(None)
    go_on.set()
    for thread in threads:
        thread.join()
    ours, theirs = text.index("Thread pliant-link:"), text.index("Thread loads data:")
    assert theirs < ours
    assert f'Thread loads data:\n  File "{__file__}"' in text


def test_no_depth_makes_it_long() -> None:
    def dig(depth: int) -> tuple[str, str]:
        return asked_beside(None) if depth == 0 else dig(depth - 1)

    text, _ = dig(500)
    assert "outer frames are left out" in text
    assert len(text) < MAX_CHARS
