"""Runs a script by itself: `python -P -m pliant.entry.alone SCRIPT [ARGS…]` is `python SCRIPT [ARGS…]`, but for Ctrl-C.

That ends the script with code 130 and without a traceback, whatever it does: importing PyTorch alone takes seconds.
"""

import atexit
import runpy
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pliant.entry.interrupt import INTERRUPTED, die_interrupted
from pliant.integrations.tensorflow_names import offer


def main(argv: Sequence[str]) -> int:
    """Run the script `argv[0]` with the arguments that follow; return the exit code."""
    script = str(Path(argv[0]).absolute())
    sys.argv = [*argv]
    sys.path.insert(0, str(Path(script).resolve().parent))
    offer()
    try:
        runpy.run_path(script, run_name="__main__")
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the next one ends what the end of the script waits for
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the script may raise anything; it is shown as Python shows it)
        trace = _from_the_script(error.__traceback__, script)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _from_the_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """Return the traceback from the script's first frame on; None of a script that is no Python."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    codes: list[int] = []
    atexit.register(lambda: die_interrupted() if codes == [INTERRUPTED] else None)  # after what the script registers
    codes.append(main(sys.argv[1:]))
    sys.exit(codes[0])
