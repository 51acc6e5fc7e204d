"""The room of Ray, with a program that says what it likes, and with the real one where no Ray is."""

import json
import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.contracts import process_stage
from tests.entry.server.rooms.test_ray_machines import ANY, RayPlayed

from pliant.cluster.ray.messages import BeginRay
from pliant.core.errors import Conflict
from pliant.entry.server.rooms.ray import PROGRAM, RayRoom
from pliant.entry.server.rooms.ray_machines import RayMachines

until = partial(process_stage.until, timeout_s=60.0)
SPEAKS = """
import json, os, pathlib, socket, sys
server = socket.socket(fileno=int(sys.argv[-1]))
lines, says = server.makefile("r"), server.makefile("w")
folder = pathlib.Path(sys.argv[1])
with (folder / "said").open("a") as file:
    file.write(lines.readline())
    for line in (folder / "says").read_text().splitlines():
        says.write(line + "\\n")
        says.flush()
    for line in lines:
        file.write(line)
        file.flush()
"""

BEGIN = {
    "kind": "begin ray",
    "address": "auto",
    "pool": "p",
    "server": "10.0.0.1:7314",
    "own": [],
    "resources": {},
}


@contextmanager
def room(
    folder: Path,
    *says: object,
    program: tuple[str, ...] = (),
    address: str = "auto",
    token: str = "t0ken",
    machines: RayMachines | None = None,
) -> Iterator[RayRoom]:
    (folder / "says").write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in says))

    def token_for(machine: str) -> str:
        if not token:
            raise Conflict("there are too many join tokens")
        return f"{token}-of-{machine}"

    begin = BeginRay(address=address, pool="p", server="10.0.0.1:7314")
    program = program or (sys.executable, "-c", SPEAKS, str(folder))
    made = RayRoom(begin, token_for, folder / "ray.log", program=program)
    made.start(machines)
    try:
        yield made
    finally:
        made.close()


def said(folder: Path) -> list[dict[str, object]]:
    try:
        return [json.loads(line) for line in (folder / "said").read_text().splitlines()]
    except FileNotFoundError:
        return []


def node(state: str, said: str = "") -> dict[str, object]:
    one = {"ray_id": "ab12", "machine": "gpu7", "state": state, "said": said}
    return {"kind": "ray nodes seen", "nodes": [one]}


def test_a_node_gets_a_token_for_its_name_and_the_log_says_what_becomes_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reached = {"kind": "ray reached", "address": "10.0.0.1:6379"}
    wanted = {"kind": "token wanted", "machine": "gpu7"}
    caplog.set_level(logging.INFO)
    with room(tmp_path, reached, wanted, node("running"), node("ended", "pliant: it has\x1b[2J another version")):
        until(lambda: len(said(tmp_path)) == 2, "it has its token")
        until(lambda: "another version" in caplog.text, "the log says it")
    begin, given = said(tmp_path)
    assert begin == BEGIN
    assert given == {"kind": "give token", "machine": "gpu7", "token": "t0ken-of-gpu7"}
    assert "agents are started on the nodes of Ray at 10.0.0.1:6379" in caplog.text
    assert "Ray: an agent runs on gpu7" in caplog.text
    assert "Ray: no agent runs on gpu7: pliant: it has [2J another version" in caplog.text
    assert "t0ken" not in caplog.text


def test_rays_autoscaler_is_asked_for_what_is_wished_and_the_next_process_is_told_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = RayPlayed(tmp_path, ANY)
    reached = {"kind": "ray reached", "address": "10.0.0.1:6379"}
    wish = {"kind": "scale ray", "num_machines": {"pliant": 2}, "let_go": []}
    for _ in range(2):
        played.submit(max_tasks=8)
    played.settle(1.0)
    caplog.set_level(logging.INFO)
    seen = {"kind": "ray nodes seen", "nodes": []}
    with closing(played.store), room(tmp_path, reached, seen, machines=played.machines) as made:
        until(lambda: len(said(tmp_path)) == 2, "it is asked for")
        assert said(tmp_path) == [BEGIN, wish]
        made.hang_up()
        until(lambda: len(said(tmp_path)) == 4, "there is another process")
    assert said(tmp_path)[2:] == [BEGIN, wish]
    assert caplog.text.count("asked for so many machines in all: 2 with pliant") == 1


def test_a_token_that_cannot_be_made_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with room(tmp_path, {"kind": "token wanted", "machine": "gpu7"}, token=""):
        until(lambda: "gpu7 of Ray's gets no join token: there are too many" in caplog.text, "the log says it")


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{",
        '{"kind": "ray lost"}',
        '{"kind": "ray nodes seen", "nodes": [{"ray_id": 7}]}',
        '{"kind": "token wanted", "machine": 7}',
    ],
)
def test_what_is_no_message_ends_the_process_and_another_one_is_started(
    line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with room(tmp_path, line):
        until(lambda: len(said(tmp_path)) >= 2, "it is begun with again")
    assert "cannot be used" in caplog.text


def test_a_process_that_ends_without_a_word_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with room(tmp_path, program=(sys.executable, "-c", "raise SystemExit(1)")):
        until(lambda: f"has ended; see {tmp_path / 'ray.log'}" in caplog.text, "the log says it")


def test_a_head_that_is_not_there_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with room(tmp_path, program=PROGRAM, address=address):
            until(lambda: f"no head of Ray answers at {address}" in caplog.text, "the log says it")
