"""Bob's model: what a request asks of it, it does to the kernel that it runs in, and to all that it can reach."""

import contextlib
import gc
import io
import json
import os
import runpy
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULT = 3
_kept: list[object] = []


def session() -> Any:
    """Return the conversation with the gateway, which is in this process."""
    return next(one for one in gc.get_objects() if type(one).__name__ == "KernelSession")


def play(script: str, facts: dict[str, Any], only: str) -> list[str]:
    """Run a script of this folder in this process, or one probe of it; return what it printed."""
    sys.modules.pop("probe", None)
    shown = session()._links._hello
    facts |= {"own_task": shown["task"], "own_token": shown["token"]}
    sys.argv = [script, json.dumps(facts), *([only] if only else [])]
    sys.path.insert(0, str(HERE))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(HERE / script))
    return said.getvalue().splitlines()


def forge(fields: dict[str, Any], text: str, number: str) -> None:
    """Send something else in the place of the next answer.

    Args:
        number: of the request, as it is written, if it is not to be the right one.
    """
    connection = session()._links.open[0].connection
    honest = connection.send_all

    def send_all(frames: Sequence[Any]) -> None:
        connection.send_all = honest
        header = frames[0].header
        said = json.dumps({**header, "busy_s": float("nan"), **fields})
        if number:
            said = said.replace(f'"id": {header["id"]}', f'"id": {number}')
        head = said.encode()
        connection._channel.sendall(
            struct.pack("!IBI", len(head) + len(text), RESULT, len(head)) + head + text.encode()
        )

        honest(frames[1:])

    connection.send_all = send_all


class Model:
    """Takes JSON as it is."""

    raw = True

    def predict(self, batch: list[Any]) -> list[Any]:
        return [self._do(one) for one in batch]

    def _do(self, asked: dict[str, Any]) -> object:
        match asked["how"]:
            case "play":
                return {"said": play(asked["script"], asked["facts"], asked.get("only", ""))}
            case "forge":
                forge(asked["fields"], asked["text"], asked["number"])
            case "raise":
                raise ValueError(asked["text"])
            case "fail":
                raise RuntimeError(asked["text"])
            case "print":
                print(asked["text"], flush=True)
            case "memory":
                _kept.append(b"1" * asked["num_bytes"])
            case "end":
                os._exit(0)
            case "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            case "loop":
                while True:
                    _kept.append(None)
                    _kept.clear()
            case "say":
                return {"said": asked["text"]}
        return {"done": asked["how"], "pid": os.getpid()}
