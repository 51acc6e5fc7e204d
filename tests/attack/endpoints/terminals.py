"""What a model says that people read in a terminal, often somebody else's: none of it may do more than to be read."""

import json
import re
from collections.abc import Callable
from typing import Final

from tests.attack.attack import Attack
from tests.attack.endpoints.kernels import started
from tests.attack.endpoints.stage import BOBS, stage_of
from tests.attack.target import Target
from tests.e2e.pool import run_command

from pliant.client import Client

HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202egnp\x7f"
"""Another title, an empty screen twice, a text from right to left, a deletion."""
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_BROKEN: Final = "broken"
_MODEL: Final = """
class Model:
    platform = {hostile!r}
    inputs = [{{"name": {hostile!r}, "datatype": "FP32", "shape": [-1]}}]

    def load(self):
        raise RuntimeError({hostile!r} + "\\r\\nand more")

    def predict(self, batch):
        return batch
"""


def _printed(*command: str) -> Callable[[Target], str]:
    """Return what runs a command as the server's administrator, and says whether it printed what harms a terminal."""

    def play(target: Target) -> str:
        job_id = _job(target)
        return _judged(target, *(job_id if word == "JOB" else word for word in command))

    return play


def _judged(target: Target, *command: str) -> str:
    _, out, err = run_command(target.home, *command)
    if "owned" not in out + err:
        return f"does not show it: {(out + err)[-150:]!r}"
    found = _HARMFUL.findall(out + err)
    return f"shows {found[:5]}" if found else "harmless"


def _job(target: Target) -> str:
    """Return the job of an endpoint of Bob's whose model does not load, and says so in its own words."""
    admin: Client = target.pool.client()
    with admin:
        if _BROKEN not in [one.name for one in target.bob.endpoints.list().endpoints]:
            folder = target.folder / _BROKEN
            folder.mkdir()
            (folder / "serve.py").write_text(_MODEL.format(hostile=HOSTILE))
            target.bob.endpoints.deploy(_BROKEN, folder, kernel_min=1, kernel_max=1)
        target.until(lambda: target.bob.endpoints.get(_BROKEN).state == "failed", "the model does not load")
        (version,) = admin.endpoints.get(_BROKEN).versions
    assert version.job_id is not None
    return version.job_id


def _answered(how: str, *more: str) -> Callable[[Target], str]:
    """Return what lets Bob's model answer in such a way, and says how `pliant predict` shows that."""

    def play(target: Target) -> str:
        started(target)
        asked = json.dumps({"how": how, "text": HOSTILE})
        return _judged(target, "predict", BOBS, "--raw", "--data", asked, *more)

    return play


def _as_message(target: Target) -> str:
    """Let Bob's model raise it; say whether the message that the gateway sends has it as it is."""
    answer = started(target).ask_bobs(how="raise", text=f"{HOSTILE}\r\nSet-Cookie: a=b")
    if "set-cookie" in answer.headers or any(byte < 32 for byte in answer.content):
        return f"sent: {answer.text[:80]!r}"
    return f"HTTP {answer.status_code}, in JSON"


def _in_logs(target: Target) -> str:
    """Say whether the logs of the server and the gateway hold what models and requests have said, as it is."""
    stage_of(target)
    for log in (target.home / "gateway" / "log", target.home.parent / "up.log"):
        if found := _HARMFUL.findall(log.read_text(errors="replace")):
            return f"{log.name} holds {found[:5]}"
    return "harmless"


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="endpoints", name=f"shown to others: {name}", expected=expected, play=play)


ATTACKS: Final = (
    _attack("why a model did not load, by `endpoints show`", "harmless", _printed("endpoints", "show", _BROKEN)),
    _attack("the same, by `show`", "harmless", _printed("show", "JOB")),
    _attack("the same, by `show --json`", "harmless", _printed("show", "JOB", "--json")),
    _attack("the same, by `why`", "harmless", _printed("why", "JOB")),
    _attack("an error of a model, by `predict`", "harmless", _answered("raise")),
    _attack("a failure of a model, by `predict`", "harmless", _answered("fail")),
    _attack("an answer of a model, by `predict`", "harmless", _answered("say")),
    _attack("an error of a model, by the gateway", "HTTP 400, in JSON", _as_message),
    _attack("all of it, in the logs of server and gateway", "harmless", _in_logs),
)
