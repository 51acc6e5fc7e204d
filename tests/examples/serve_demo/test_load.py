"""The load program tells right answers from wrong ones, and tells of every request that it sent."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.demo.report import load_data
from examples.serve_demo.load import Target, fault_of, read_sheets
from examples.serve_demo.sheets import NUM_SHEETS, write_sheets

SCORES = np.array([[1.0, -2.0], [0.5, 3.0]], dtype=np.float32)
HEAD = "Inference-Header-Content-Length"
RIGHT, WRONG, REFUSED, BROKEN = range(4)
BROKEN_FAULTS = ("ReadError: ", "RemoteProtocolError: Server disconnected without sending a response.")
"""A connection that breaks reads as its end or as its reset, whichever the kernel says first."""


def test_scores_that_differ_in_their_last_bits_are_right() -> None:
    assert fault_of({"output": SCORES * np.float32(1.00001)}, SCORES) == ""


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        ({"output": SCORES[::-1]}, "2 of 2 digits have other scores"),
        ({"output": SCORES + np.array([[0, 0], [0.1, 0]])}, "1 of 2 digits have other scores"),
        ({"output": SCORES * np.nan}, "2 of 2 digits have other scores"),
        ({"output": SCORES[:1]}, r"scores of shape (1, 2) came, not (2, 2)"),
        ({}, "0 outputs came: "),
        ({"a": SCORES, "b": SCORES}, "2 outputs came: a, b"),
    ],
)
def test_other_scores_are_wrong(outputs: dict[str, np.ndarray], fault: str) -> None:
    assert fault_of(outputs, SCORES) == fault


def test_every_sheet_has_another_answer_which_is_the_models(tmp_path: Path) -> None:
    data = load_data()
    model = data.plain.make_model(2)
    torch.save(model.state_dict(), tmp_path / "model.pt")

    sheets = read_sheets(write_sheets(data, tmp_path / "model.pt", tmp_path / "sheets.npz"))

    assert len({sheet.body for sheet in sheets}) == len({sheet.scores.tobytes() for sheet in sheets}) == NUM_SHEETS
    with torch.inference_mode():
        assert sheets[0].scores.sum() == pytest.approx(float(model.eval()(data.test_set.tensors[0]).sum()), rel=1e-4)


@contextmanager
def gateway(replies: Mapping[bytes, tuple[int, bytes, int]]) -> Iterator[str]:
    """Serve a reply (status, body, bytes of JSON) to every request's body; status 0 breaks the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer, num_json = replies[body]
            if status == 0 or (self.path, self.headers["Authorization"]) != ("/v2/models/m/infer", "Bearer secret"):
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header(HEAD, str(num_json))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def reply(scores: np.ndarray) -> tuple[bytes, int]:
    raw = scores.astype("<f4").tobytes()
    said = {"binary_data_size": len(raw)}
    one = {"name": "output", "datatype": "FP32", "shape": list(scores.shape), "parameters": said}
    head = json.dumps({"outputs": [one]}).encode()
    return head + raw, len(head)


def test_right_wrong_refused_and_broken_answers_are_all_told(tmp_path: Path) -> None:
    images = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    np.savez(tmp_path / "sheets.npz", images=images, scores=images * 2)
    bodies = [sheet.body for sheet in read_sheets(tmp_path / "sheets.npz")]
    replies = {
        bodies[RIGHT]: (200, *reply(images[RIGHT] * 2)),
        bodies[WRONG]: (200, *reply(images[RIGHT] * 2)),
        bodies[REFUSED]: (429, b"too many wait", 0),
        bodies[BROKEN]: (0, b"", 0),
    }
    command = [sys.executable, "-m", "examples.serve_demo.load"]
    with (
        gateway(replies) as url,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        target = Target(url=url, token="secret", name="m", sheets=str(tmp_path / "sheets.npz"))
        for line in (asdict(target), {"rate": 100.0, "within_s": 0.0}):
            program.stdin.write(json.dumps(line) + "\n")
        program.stdin.flush()
        told = [json.loads(next(program.stdout)) for _ in range(20)]
        program.stdin.close()
        told += [json.loads(line) for line in program.stdout]

    last = told.pop()
    faults = Counter((one["status"], "broken" if one["fault"] in BROKEN_FAULTS else one["fault"]) for one in told)
    assert program.returncode == 0
    assert last == {"num_sent": len(told)}
    assert set(faults) == {
        (200, ""),
        (200, "2 of 2 digits have other scores"),
        (429, "too many wait"),
        (0, "broken"),
    }
    assert max(faults.values()) - min(faults.values()) <= 1
    assert all(one["done_at"] >= one["intended_at"] for one in told)
