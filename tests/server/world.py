"""One of each noun on a server, and the requests that make them, for tests that go over all of them."""

import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

Served = Any
NAME: Final = "small"


def code(text: str = "print()\n") -> bytes:
    """Return a folder with one program, packed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in ("main.py", "train.py"):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """How a noun is made, and how it is changed."""

    kind: str
    path: str
    body: Mapping[str, Any]
    part: str = ""
    """The part of a form that the body goes in, beside the code."""
    change: tuple[str, str, Mapping[str, Any], Mapping[str, Any]] | None = None
    """Method, what is added to the path of the noun, and two bodies that differ."""

    @property
    def one(self) -> str:
        """The path of the noun that was made."""
        return f"{self.path}/{self.body['name']}"

    def send(self, http: httpx.Client) -> httpx.Response:
        """Make it."""
        return self._send(http, "POST", self.path, self.body, {})

    def send_change(self, http: httpx.Client, number: int, headers: Mapping[str, str]) -> httpx.Response:
        """Change it in one of the two ways."""
        assert self.change is not None
        method, more, *bodies = self.change
        return self._send(http, method, f"{self.one}{more}", bodies[number], headers)

    def _send(
        self, http: httpx.Client, method: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> httpx.Response:
        if not self.part:
            return http.request(method, path, json=body, headers=headers)
        files: dict[str, Any] = {self.part: (None, json.dumps(body)), "code": ("c.tar.gz", code())}
        return http.request(method, path, files=files, headers=headers)


def _described(text: str) -> dict[str, str]:
    return {"description": text}


MAKES: Final = (
    Make(
        kind="user",
        path="/users",
        body={"name": "ada", "role": "user", "password": "correct horse"},
        change=("PATCH", "", {"role": "viewer"}, {"role": "operator"}),
    ),
    Make(
        kind="resource group",
        path="/resource-groups",
        body={"name": NAME, "hosts": {"all": True}},
        change=("PATCH", "", _described("one"), _described("two")),
    ),
    Make(
        kind="queue",
        path="/queues",
        body={"name": NAME, "resource_group": NAME},
        change=("PATCH", "", {"weight": 2}, {"weight": 3}),
    ),
    Make(
        kind="data set",
        path="/datasets",
        body={"name": NAME, "kind": "any", "source": {"path": "digits"}},
        change=("PATCH", "", _described("one"), _described("two")),
    ),
    Make(
        kind="environment",
        path="/environments",
        body={"name": NAME, "venv": ""},
        change=("PUT", "/shares", {"shared_with": ["ada"]}, {"shared_with": ["*"]}),
    ),
    Make(
        kind="template",
        path="/templates",
        body={"name": NAME},
        part="template",
        change=("PUT", "", {"name": NAME, **_described("one")}, {"name": NAME, **_described("two")}),
    ),
    Make(
        kind="model",
        path="/models",
        body={"name": NAME, "template": NAME},
        change=("PATCH", "", _described("one"), _described("two")),
    ),
    Make(kind="training", path=f"/models/{NAME}/trainings", body={"name": NAME}),
)


def makes(server: Served) -> tuple[Make, ...]:
    """Return how every noun is made on a server; its home gets what they are made of."""
    (server.home / "data" / "digits").mkdir(exist_ok=True)
    venv = _venv(server.home.with_name("venv"))
    return tuple(
        Make(kind=make.kind, path=make.path, body={**make.body, "venv": str(venv)}, change=make.change)
        if make.kind == "environment"
        else make
        for make in MAKES
    )


def _venv(folder: Path) -> Path:
    """Make a folder that passes for a virtual environment, with this interpreter's packages."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    (folder / "pyvenv.cfg").touch()
    if not python.exists():
        python.write_text('#!/bin/sh\necho \'["0", "2"]\'\n')
        os.chmod(python, 0o755)
    return folder
