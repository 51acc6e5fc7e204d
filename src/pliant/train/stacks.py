"""Where the threads of this process are, in words. May be called from any thread; the others go on meanwhile."""

import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

MAX_CHARS: Final = 100_000
"""What does not fit is left out, the end of it first."""
_MAX_FRAMES: Final = 60
_OURS: Final = str(Path(__file__).resolve().parents[1])
_RUNPY: Final = "<frozen runpy>"
_PYTHON: Final = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], "<frozen")


def stacks() -> str:
    """Return the stacks of all threads but the one that asks, innermost line last: the main one, the script's, ours."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main, me = threading.main_thread().ident, threading.get_ident()
    frames = sys._current_frames()
    is_ours = {ident: names.get(ident, "").startswith("pliant-") for ident in frames}
    ordered = sorted((ident for ident in frames if ident != me), key=lambda ident: (ident != main, is_ours[ident]))
    text = "\n".join(f"Thread {names.get(ident, ident)}:\n{_stack(frames[ident])}" for ident in ordered)
    return text[:MAX_CHARS]


def main_line() -> str:
    """Return the main thread's innermost line that is neither Python's, a library's nor ours; else its innermost."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    if frame is None:
        return "no line: its main thread has ended"
    lines = list(_outward(frame))
    own = (line for line in lines if not line.f_code.co_filename.startswith((_OURS, *_PYTHON)))
    return _place(next(own, lines[0]))


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def _stack(frame: FrameType) -> str:
    found: Sequence[traceback.FrameSummary] = traceback.extract_stack(frame)
    found = found[_num_before_script(found) :]
    lines = traceback.format_list(list(found[-_MAX_FRAMES:]))
    more = len(found) - _MAX_FRAMES
    return (f"  ({more} outer frames are left out)\n" if more > 0 else "") + "".join(lines)


def _num_before_script(found: Sequence[traceback.FrameSummary]) -> int:
    """Return how many of the outer frames say only that Python runs a script or a thread; at least one is left."""
    runners = [n for n, frame in enumerate(found) if frame.filename in (_RUNPY, threading.__file__)]
    last = 0
    for number in runners:
        if found[number].filename == _RUNPY or number == last:
            last = number + 1
    return min(last, len(found) - 1)
