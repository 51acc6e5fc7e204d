"""What a script leaves for the server to find: the server must read nothing but files, and wait for nobody."""

import secrets
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.attack.attack import Attack
from tests.attack.target import INSIDE, Target

from pliant.api.models import ModelRequest, TemplateRequest, TrainingRequest
from pliant.core.errors import PliantError


def _still_works(replace: dict[str, str], **facts: Any) -> Callable[[Target], str]:
    """Return what plants something and says whether the server still starts and ends jobs."""

    def play(target: Target) -> str:
        kind: dict[str, Any] = {"max_tasks": 1} if facts.get("killed") else {"fixed": True, "max_restarts": 0}
        job_id = target.submit("bob", "planting.py", {"replace": replace, **facts}, **kind)
        target.until(lambda: target.bob.job(job_id).tasks, "it is started")
        is_at_work = target.is_at_work()
        with suppress(PliantError):  # it has ended
            target.bob.stop(job_id)
        if not is_at_work:
            return "no job starts or ends any more"
        return "at work" if target.bob.healthy() else "not healthy"

    return play


def _fetched(place: str, stream: str = "") -> Callable[[Target], str]:
    """Return what plants a link to the server's token, fetches it as its own, and says what came."""

    def play(target: Target) -> str:
        token = (target.home / "token").read_text().strip()
        job = target.run("planting.py", {"replace": {place: str(target.home / "token")}})
        to = target.folder / f"fetched-{secrets.token_hex(4)}"
        try:
            if stream:
                return _judge("".join(target.lines_of(job.id, stream)), token)
            target.bob.result(job.id, to)
        except PliantError:
            return "nothing"
        files = [path for path in to.rglob("*") if path.is_file() and not path.is_symlink()]
        return _judge("".join(path.read_text(errors="replace") for path in files), token)

    return play


def _judge(text: str, token: str) -> str:
    return "the server's token" if token in text else "nothing"


def _environment_of_its_own(target: Target) -> str:
    """Submit with an environment whose interpreter is a script of Bob's, and say what it could read."""
    folder = target.folder / "planted-environment"
    _plant_interpreter(folder, proof := target.folder / "proof", target.home / "token")
    return _submitted(target, proof, environment=str(folder))


def _plant_interpreter(folder: Path, proof: Path, token: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    python = folder / "bin" / "python"
    python.write_text(f"#!/bin/sh\ncat {token} > {proof}/token\nexit 1\n")
    python.chmod(0o755)
    proof.mkdir(exist_ok=True)
    proof.chmod(0o777)


def _wheel_of_its_own(target: Target) -> str:
    """Submit with a requirement that is a wheel of Bob's, which says something to whoever starts that Python."""
    code, proof = target.folder / "wheel-code", target.folder / "wheel-proof"
    code.mkdir()
    proof.mkdir()
    proof.chmod(0o777)
    shutil.copy(INSIDE / "nothing.py", code / "nothing.py")
    said = f"import shutil; shutil.copyfile({str(target.home / 'token')!r}, {str(proof / 'token')!r})"
    wheel = code / "planted-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("planted.pth", said + "\n")
        archive.writestr("planted-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        archive.writestr(
            "planted-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("planted-1.0.dist-info/RECORD", "planted.pth,,\n")
    (code / "requirements.txt").write_text(f"./{wheel.name}\n")
    return _submitted(target, proof, code=code, environment="requirements:requirements.txt")


def _weights_of_a_training(target: Target) -> str:
    """Train a model of Bob's that leaves a link to the token as its weights, and fetch them."""
    token, folder = target.home / "token", target.folder / "template"
    folder.mkdir()
    (folder / "main.py").write_text(
        f"import os\nmodel = os.environ['SAVED_MODEL_DIR']\nos.makedirs(model, exist_ok=True)\n"
        f"os.symlink({str(token)!r}, model + '/model.pt')\n"
    )
    to = target.folder / "weights.pt"
    template = {"name": "planted", "main_file": "main.py", "engines": ["distributed"]}
    target.bob.templates.add(folder, TemplateRequest.model_validate(template))
    target.bob.models.add(ModelRequest.model_validate({"name": "planted", "template": "planted"}))
    training = target.bob.models.train("planted", TrainingRequest.model_validate({"name": "first"}))
    target.until(lambda: target.bob.job(training.job_id).job.ended, "the training ends")
    try:
        target.bob.models.weights("planted", "first", to)
    except PliantError:
        return "nothing"
    return _judge(to.read_text(errors="replace"), token.read_text().strip())


def _submitted(target: Target, proof: Path, **options: Any) -> str:
    with suppress(PliantError):  # it is refused, or has ended
        job_id = target.submit("bob", "nothing.py", {}, fixed=True, max_restarts=0, **options)
        target.becomes(lambda: target.bob.job(job_id).job.ended, timeout_s=40.0)
        target.bob.stop(job_id)
    text = "".join(path.read_text(errors="replace") for path in proof.rglob("*") if path.is_file())
    return _judge(text, (target.home / "token").read_text().strip())


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="planted files", name=name, expected=expected, play=play)


ATTACKS: Final = (
    _attack("a link to the token as its result, fetched", "nothing", _fetched("note.txt")),
    _attack("a link to the token as its model, fetched", "nothing", _fetched("model")),
    _attack("a link to the token as its output, read", "nothing", _fetched("stdout", "stdout")),
    _attack("a link to the token as its errors, read", "nothing", _fetched("stderr", "stderr")),
    _attack("a pipe as its note of the step, killed", "at work", _still_works({"step": "fifo"}, killed=True)),
    _attack("a pipe as its errors", "at work", _still_works({"stderr": "fifo"}, killed=True)),
    _attack("a pipe as its output", "at work", _still_works({"stdout": "fifo"})),
    _attack("a link to /dev/zero as its errors", "at work", _still_works({"stderr": "zero"}, killed=True)),
    _attack("a link to itself as its errors", "at work", _still_works({"stderr": "itself"}, killed=True)),
    _attack("a pipe as its last messages", "at work", _still_works({"unsent": "fifo"}, killed=True)),
    _attack("a link to /dev/zero as its last messages", "at work", _still_works({"unsent": "zero"}, killed=True)),
    _attack(
        "nothing, as long as may be, as its last messages", "at work", _still_works({"unsent": "sparse"}, killed=True)
    ),
    _attack("a folder as its note of the step", "at work", _still_works({"step": "folder"}, killed=True)),
    _attack("a pipe as its model", "at work", _still_works({"model": "fifo"})),
    _attack("nothing, as long as a file may be, as its result", "at work", _still_works({"big": "sparse"})),
    _attack("3,000 folders in each other", "at work", _still_works({}, deep=True)),
    _attack("a link to the token as a model's weights, fetched", "nothing", _weights_of_a_training),
    _attack("an interpreter of its own", "nothing", _environment_of_its_own),
    _attack("a wheel of its own among its requirements", "nothing", _wheel_of_its_own),
)
