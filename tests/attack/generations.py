"""What strangers must not do to tasks that train together, nor to the control link."""

import json
from typing import Final

from tests.attack.attack import REFUSED, Attack, from_inside
from tests.attack.target import Target
from tests.link_proofs import new_proof
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pliant.control.jobs.orders import job_token
from pliant.core.job import JobId

INSIDE: Final = {
    "addresses of a generation": REFUSED,
    "an address put into a generation": REFUSED,
    "a transfer with a guessed token": REFUSED,
    "nonsense": REFUSED,
    "a flood of connections, for three seconds": "done",
}


def _trains_on(target: Target) -> str:
    """Say whether Ada's training has lost nobody, and goes on, after all that was done to it."""
    lost = [event for event in target.ada.events(job_id=target.victim).events if event.kind == "task.lost"]
    before = _step(target)
    goes_on = target.becomes(lambda: _step(target) > before, timeout_s=20.0)
    return f"{'trains on' if goes_on else 'stands still'}, {len(lost)} tasks lost"


def _grows(target: Target) -> str:
    """Say whether Ada's job still forms generations, with a third task."""
    target.grow_victim(3)
    formed = target.becomes(lambda: len(target.victims()) == 3, timeout_s=40.0)
    return "formed" if formed else f"{len(target.victims())} tasks train"


def _step(target: Target) -> int:
    progress = target.ada.job(target.victim).job.progress
    return progress.step if progress is not None else 0


def _link(target: Target, task_id: str) -> str:
    """Say how the server answers who opens a link with a token of Ada's job."""
    token = job_token((target.home / "secret").read_bytes(), JobId(target.victim))
    challenge = json.loads((target.home / "server.json").read_text())["challenge"]
    proof = new_proof(task_id, challenge)
    host, port = target.address
    url = f"ws://{host}:{port}/v1/link?task={task_id}"
    try:
        with connect(url, additional_headers={"Authorization": proof.authorization(token)}):
            return "opened"
    except InvalidStatus as refused:
        return f"HTTP {refused.response.status_code}"


def _attack(name: str, expected: str, play: object) -> Attack:
    return Attack(group="data plane", name=name, expected=expected, play=play)  # type: ignore[arg-type]


ATTACKS: Final = (
    *from_inside("data plane", "network.py", INSIDE),
    _attack("the training that was attacked", "trains on, 0 tasks lost", _trains_on),
    _attack("a generation after the attacks", "formed", _grows),
    _attack("the link of a task that never was", "HTTP 401", lambda target: _link(target, f"{target.victim}.99")),
    _attack("the link of another job's task", "HTTP 401", lambda target: _link(target, "job-999.1")),
)
