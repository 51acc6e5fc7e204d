"""What is deployed with ill intent: archives that reach out of their folder, and descriptions that are none."""

import io
import json
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
from tests.attack.attack import Attack
from tests.attack.endpoints.stage import refusal, stage_of
from tests.attack.target import Target

_SERVE: Final = b"class Model:\n    def predict(self, batch):\n        return batch\n"
_GIVEN: Final = {"name": "planted", "kernel_path": "kernel.py", "runtime": "python", "schema_version": "1"}
_KERNEL: Final = b"import redhareapi\n"
_NEW: Final = "planted"


def _member(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def _tar(*members: tarfile.TarInfo, files: dict[str, bytes] | None = None) -> bytes:
    """Return a tar.gz of a model that would be taken, with something more."""
    out = io.BytesIO()
    whole = {"serve.py": _SERVE} if files is None else files
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in whole.items():
            archive.addfile(_member(name, size=len(content)), io.BytesIO(content))
        for info in members:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return out.getvalue()


def _zip(*names: str, mode: int = 0o100644, content: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("serve.py", _SERVE)
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.create_system = mode << 16, 3
            archive.writestr(info, content)
    return out.getvalue()


def _announced() -> bytes:
    """Return a tar.gz whose member says that it has a terabyte, and has it of nothing."""
    info = _member("weights.bin", size=1 << 40)
    return zlib.compress(info.tobuf(), wbits=31)


def _long_name() -> bytes:
    """Return a tar.gz whose name is said to have a gigabyte, and has 64 MiB of it."""
    head = _member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=1 << 30).tobuf()
    return zlib.compress(head + b"a" * (64 << 20), wbits=31)


def _overlapping() -> bytes:
    """Return a zip whose directory names one megabyte of zeros a thousand times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("serve.py", _SERVE)
        archive.writestr("zeros", bytes(1 << 20))
        (entry,) = (info for info in archive.filelist if info.filename == "zeros")
        for number in range(1000):
            copied = zipfile.ZipInfo(f"zeros-{number}")
            for field in ("CRC", "compress_size", "file_size", "header_offset", "compress_type", "flag_bits"):
                setattr(copied, field, getattr(entry, field))
            archive.filelist.append(copied)
    return out.getvalue()


ARCHIVES: Final[dict[str, Callable[[], bytes]]] = {
    "a file above its folder": lambda: _tar(_member("../planted")),
    "a file above, further on": lambda: _tar(_member("a/../../planted")),
    "an absolute name": lambda: _tar(_member("/tmp/planted")),
    "a link to the server's token": lambda: _tar(_member("token", tarfile.SYMTYPE, linkname="../../../token")),
    "a link to a folder, and a file through it": lambda: _tar(
        _member("a", tarfile.SYMTYPE, linkname="/tmp"), _member("a/planted")
    ),
    "a hard link to the server's token": lambda: _tar(_member("token", tarfile.LNKTYPE, linkname="../../../token")),
    "a device": lambda: _tar(_member("zero", tarfile.CHRTYPE, devmajor=1, devminor=5)),
    "a disk": lambda: _tar(_member("disk", tarfile.BLKTYPE, devmajor=8)),
    "a pipe": lambda: _tar(_member("pipe", tarfile.FIFOTYPE)),
    "the model's file twice": lambda: _tar(_member("serve.py")),
    "the model's file as a link": lambda: _tar(
        _member("serve.py", tarfile.SYMTYPE, linkname="/etc/passwd"), files={"other.py": _SERVE}
    ),
    "a file of a terabyte, announced": _announced,
    "a name of a gigabyte": _long_name,
    "20,001 files": lambda: _tar(*(_member(f"files/{number}") for number in range(20_001))),
    "no model, but a name with a line feed and an escape": lambda: _tar(files={"a\n\x1b[31m": b"x"}),
    "a zip with a file above": lambda: _zip("../planted"),
    "a zip with a link": lambda: _zip("token", mode=0o120777, content=b"/etc/passwd"),
    "a zip that names a megabyte a thousand times": _overlapping,
    "an archive that is none": lambda: b"\x1f\x8b" + bytes(1000),
    "a zip that ends before its directory": lambda: _zip("x")[:-30] + struct.pack("<I", 0),
}
DESCRIPTIONS: Final[dict[str, bytes | dict[str, Any]]] = {
    "a number that is none": b'{"name": "planted", "kernel_path": "kernel.py", "schema_version": NaN}',
    "a number without end": b'{"name": "planted", "kernel_path": "kernel.py", "schema_version": 1e999}',
    "a number of 100,000 digits": b'{"name": "planted", "kernel_path": "kernel.py", "a": ' + b"9" * 50_000 + b"}",
    "objects, 10,000 deep": b'{"a":' * 10_000,
    "a text of a megabyte": {"readme": "a" * (1 << 20)},
    "a name that leads out": {"name": "../../planted"},
    "a name with an escape": {"name": "planted\x1b[31m"},
    "a name with a line feed": {"name": "planted\nSet-Cookie: a=b"},
    "a name of 100,000 letters": {"name": "a" * 50_000},
    "a name that is a list": {"name": ["planted"]},
    "a kernel above its folder": {"kernel_path": "../../../token"},
    "a kernel elsewhere": {"kernel_path": "/etc/passwd"},
    "a kernel with a NUL": {"kernel_path": "kernel.py\0"},
    "half a letter": b'{"name": "planted", "kernel_path": "kernel.py", "description": "\\ud800"}',
    "no object": b"[1, 2]",
}
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "kernels without number": {"kernel_max": "NaN"},
    "more kernels than there may be": {"kernel_max": 10**9},
    "kernels below zero": {"kernel_min": -1},
    "a time of a year": {"execution_timeout_s": 31_536_000.0},
    "a body of a terabyte": {"max_body_bytes": 1 << 40},
    "a queue of a billion": {"max_queue": 10**9},
    "a file above its folder": {"file": "../../../token"},
    "a file elsewhere": {"file": "/etc/passwd"},
    "a source with an escape": {"source": "\x1b[31mred"},
    "an environment of the server's folder": {"environment": "../../environments"},
    "a variable with a NUL": {"env": {"A": "a\0b"}},
    "a variable whose name is an assignment": {"env": {"A=B": "c"}},
    "a variable of Pliant's own": {"env": {"PLIANT_KERNEL_TOKEN": "0"}},
    "a field that there is not": {"run_as": "root"},
}
NAMES: Final = ("../planted", "a/b", "%2e%2e", "a\nb", "-rf", "a" * 300, "\x1b[31m", "a b", "ＡＤＡＳ", "con\0")


def _left(target: Target) -> list[str]:
    """Return what an archive has left outside the folder that it was unpacked in, and what was not removed of it."""
    home = target.home
    found = [
        os.path.join(folder, name)
        for top in (home, Path("/tmp/planted"))
        for folder, folders, files in os.walk(top)
        for name in (*folders, *files)
        if name in ("planted", "zeros") or name.startswith(".draft-")
    ]
    beside = [str(path) for path in (home.parent / "planted", Path("/tmp/planted")) if path.exists()]
    uploads = [str(path) for path in (home / "uploads").glob("*")] if (home / "uploads").is_dir() else []
    return [*found, *beside, *uploads]


def _refused(target: Target, send: Callable[[], object]) -> str:
    """Say whether a deployment is refused, makes no endpoint, leaves no file, and keeps nobody from being answered."""
    stage = stage_of(target)
    came = send()
    names = [one.name for one in target.bob.endpoints.list().endpoints]
    if _NEW in names:
        target.bob.endpoints.remove(_NEW)
        return f"{came}, and it is there"
    if left := _left(target):
        return f"{came}, and left {left[:2]}"
    return str(came) if stage.answers() else f"{came}, and Ada's does not answer any more"


def _status(answer: httpx.Response) -> str:
    """Return what became of a request: refused, if it was, in letters that a terminal may show."""
    if not 400 <= answer.status_code < 500:
        return f"HTTP {answer.status_code} {answer.text[:80]}"
    if any(ord(letter) < 32 and letter != "\n" for letter in answer.text) or "\x1b" in str(answer.headers):
        return f"comes back: {answer.text[:80]!r}"
    return "refused"


def _http(target: Target) -> httpx.Client:
    host, port = target.address
    headers = {"Authorization": f"Bearer {target.tokens['bob']}"}
    return httpx.Client(base_url=f"http://{host}:{port}", headers=headers, timeout=60.0, trust_env=False)


def _form(version: str, archive: bytes) -> dict[str, tuple[str | None, bytes]]:
    return {"version": (None, version.encode()), "code": ("code", archive)}


def _archive(make: Callable[[], bytes]) -> Callable[[Target], str]:
    def play(target: Target) -> str:
        files = _form("{}", make())
        with _http(target) as http:
            return _refused(target, lambda: _status(http.post(f"/v1/endpoints/{_NEW}/versions", files=files)))

    return play


def _ibm_archive(make: Callable[[], bytes]) -> Callable[[Target], str]:
    def play(target: Target) -> str:
        with _http(target) as http:
            return _refused(target, lambda: _status(http.post("/dlim/v1/deployment/model", content=make())))

    return play


def _described(description: bytes | dict[str, Any]) -> bytes:
    text = description if isinstance(description, bytes) else json.dumps(_GIVEN | description).encode()
    return _tar(files={"model.json": text, "kernel.py": _KERNEL, "README.md": b"x"})


def _setting(settings: dict[str, Any]) -> Callable[[Target], str]:
    def play(target: Target) -> str:
        text = json.dumps(settings).replace('"NaN"', "NaN")
        files = _form(text, _tar())
        with _http(target) as http:
            return _refused(target, lambda: _status(http.post(f"/v1/endpoints/{_NEW}/versions", files=files)))

    return play


def _in_order(target: Target) -> str:
    """Deploy the model that the others add something to; were it refused, they would prove nothing."""
    stage_of(target)
    files = _form("{}", _tar())
    with _http(target) as http:
        answer = http.post(f"/v1/endpoints/{_NEW}/versions", files=files)
    target.bob.endpoints.remove(_NEW)
    return "taken" if answer.status_code == 201 else f"HTTP {answer.status_code} {answer.text[:80]}"


def _names(target: Target) -> str:
    folder = target.folder / "adas-model"
    came = {name: refusal(lambda name=name: target.bob.endpoints.deploy(name, folder)) for name in NAMES}  # type: ignore[misc]
    taken = {name: what for name, what in came.items() if what not in ("InvalidInput", "NotFound")}
    return "refused" if not taken else f"{taken}"[:150]


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="endpoints", name=name, expected=expected, play=play)


ATTACKS: Final = (
    _attack("deployed: what is in order", "taken", _in_order),
    *(_attack(f"deployed: {name}", "refused", _archive(make)) for name, make in ARCHIVES.items()),
    *(
        _attack(f"deployed as IBM's: {name}", "refused", _ibm_archive(lambda said=said: _described(said)))  # type: ignore[misc]
        for name, said in DESCRIPTIONS.items()
    ),
    *(_attack(f"deployed with {name}", "refused", _setting(given)) for name, given in SETTINGS.items()),
    _attack("deployed under names that are none", "refused", _names),
)
