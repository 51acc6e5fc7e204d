"""The load program as the demo sees it: it is told rates, and its answers go into the recording."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from examples.demo.recording import Answer, DemoFailed, Recording
from examples.serve_demo.arrivals import Slope
from examples.serve_demo.load import Target

END_S = 30.0


class Traffic:
    """Requests on their way."""

    def __init__(self, process: subprocess.Popen[str], recording: Recording) -> None:
        self._process = process
        self._recording = recording
        self._slope = Slope(from_rate=0.0, to_rate=0.0, began_at=time.time(), within_s=0.0)
        self.num_sent: int | None = None
        """Known once all is over."""
        self._abandoned = False
        self._reading = threading.Thread(target=self._read, name="answers", daemon=True)
        self._reading.start()

    @property
    def rate(self) -> float:
        """Return the requests per second that are sent now."""
        return self._slope.at(time.time())

    def turn(self, rate: float, *, within_s: float = 0.0) -> None:
        """Change the rate from now on, in a straight line."""
        self._slope = self._slope.turn(rate, within_s=within_s, now=time.time())
        self._say({"rate": rate, "within_s": within_s})

    def end(self) -> None:
        """Send nothing more; what was sent is still answered."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def abandon(self) -> None:
        """End the program at once, whatever it waits for; nothing happens if it has ended."""
        self._abandoned = True
        self._process.kill()
        self._process.wait(END_S)
        self._reading.join(END_S)

    @property
    def is_over(self) -> bool:
        """Whether every request that was sent has an answer, or never will have one."""
        return self.num_sent is not None

    def _say(self, fields: dict[str, float]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(fields) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DemoFailed(f"the load program is gone: {error}") from error

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "num_sent" in said:
                self.num_sent = said["num_sent"]
            else:
                self._recording.add_answer(Answer(**said))
        if self.num_sent is None and not self._abandoned:
            status = self._process.wait(END_S)
            self._recording.fail(DemoFailed(f"the load program ended by itself, with status {status}"))


@contextmanager
def traffic_to(target: Target, recording: Recording) -> Iterator[Traffic]:
    """Run the load program while the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.serve_demo.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(target)) + "\n")
    process.stdin.flush()
    traffic = Traffic(process, recording)
    try:
        yield traffic
    finally:
        traffic.abandon()
