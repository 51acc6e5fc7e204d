"""A program of its own that makes one virtual environment and installs requirements into it, with uv.

`python -I build_program.py`, with one line of JSON on its standard input (`BuildSpec`); what it prints to standard
error is the log, and its last line on standard output the result (`BuildResult`). It writes in `venv`, in its home and
in uv's cache, and nowhere else. It leads a process group, and ends that whole group when its standard input closes: a
server that was killed leaves no builder behind. Standard library only: it runs as a file, with nothing of Pliant
imported.

Its environment may hold passwords of an index, so it executes nothing of what it has installed: uv asks the
environment's Python what it is before it installs, and the server's own Python compiles the packages afterwards.

The environment sees what the server's own interpreter sees (torch, Pliant and all), after its own packages: a `.pth`
file adds those folders to the end of the path. `--system-site-packages` would add those of the base interpreter only,
which has neither if the server itself runs in a virtual environment.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict
from urllib.parse import unquote

_CONSTRAINTS: Final = "all-constraints.txt"
_REQUIREMENTS: Final = "requirements-for-uv.txt"
_OPTIONS: Final = {"--pre": ["--pre"], "--prefer-binary": []}
"""Lines of pip's that uv takes on its command line only, or that mean nothing where there are only wheels."""
_PTH: Final = "_pliant_server.pth"
_IN_URL: Final = re.compile(r"(\w://)[^/\s@]+@")
_CREDENTIALS: Final = re.compile(r"\w://([^/\s@]+)@")
_TRUE: Final = frozenset({"y", "yes", "t", "true", "on", "1"})
_MASK: Final = "****"
_MIN_SECRET: Final = 4
_MAX_LINE: Final = 1 << 16


class BuildSpec(TypedDict):
    """What to build."""

    folder: str
    """Holds `requirements.txt`, `constraints.txt` and perhaps `wheels`; its empty folder `venv` is filled."""
    site: list[str]
    """Folders of packages that the environment shall see after its own."""
    constraints: list[str]
    """What no requirement may change, besides `constraints.txt`."""
    uv: str
    """The program that installs."""


class BuildResult(TypedDict):
    """What was built."""

    builder: str
    """What installed, with its version, such as `uv 0.9`."""
    num_bytes: int
    """In the environment."""


def main() -> int:
    """Build what the spec on standard input says; return the exit code."""
    spec: BuildSpec = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.umask(0o022)
    log = MaskedLog(os.environ)
    folder = Path(spec["folder"])
    venv = folder / "venv"
    try:
        builder = " ".join(_answer([spec["uv"], "--version"]).split()[:2])
    except (OSError, subprocess.CalledProcessError) as error:
        log.say(f"error: uv cannot be run ({error}); install it beside Pliant: pip install uv")
        return 1
    log.say(f"pliant: makes a virtual environment for {sys.executable}")
    if log.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(venv)], folder) != 0:
        return 1
    packages = _packages_of(venv)
    lines = [f"import site; site.addsitedir({folder!r})" for folder in spec["site"]]
    (packages / _PTH).write_text("\n".join([*lines, ""]))
    if (folder / "requirements.txt").read_text().strip():
        note_installed(packages, spec["site"])
        log.say(f"pliant: installs the requirements with {builder}")
        if (code := log.run(_install_command(spec, folder, venv), folder)) != 0:
            log.say(f"pliant: {builder} ended with exit code {code}")
            return 1
        compile_packages(packages)
    log.say("pliant: the environment is built")
    print(json.dumps(BuildResult(builder=builder, num_bytes=_num_bytes(venv))), flush=True)
    return 0


def _packages_of(venv: Path) -> Path:
    """Return the folder of packages of a virtual environment of this interpreter's; nothing of it is run."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(venv)}))


def _end_with_server() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


class MaskedLog:
    """Runs programs and prints what they print, without the secrets that the environment holds."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._secrets = sorted(secrets_of(env), key=len, reverse=True)

    def say(self, line: str) -> None:
        """Print a line."""
        print(self.mask(line), file=sys.stderr, flush=True)

    def mask(self, line: str) -> str:
        """Return a line without users and passwords of addresses."""
        line = _IN_URL.sub(rf"\1{_MASK}@", line)
        for secret in self._secrets:
            line = line.replace(secret, _MASK)
        return line

    def run(self, command: Sequence[str], folder: Path) -> int:
        """Run a program in a folder; return its exit code."""
        with subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            while line := process.stdout.readline(_MAX_LINE):
                self.say(line.rstrip())
        return process.returncode


def secrets_of(env: Mapping[str, str]) -> set[str]:
    """Return users with their passwords, and passwords, in the addresses that an environment holds."""
    found = set()
    for value in env.values():
        for credentials in _CREDENTIALS.findall(value):
            password = credentials.partition(":")[2]
            found |= {credentials, unquote(credentials), password, unquote(password)}
    return {secret for secret in found if len(secret) >= _MIN_SECRET}


def _install_command(spec: BuildSpec, folder: Path, venv: Path) -> list[str]:
    """Return what installs the requirements, and write the files that it names."""
    home = Path.home()
    constraints, requirements = home / _CONSTRAINTS, home / _REQUIREMENTS
    constraints.write_text("\n".join([(folder / "constraints.txt").read_text(), *spec["constraints"], ""]))
    lines = (folder / "requirements.txt").read_text().splitlines()
    requirements.write_text("".join(f"{_absolute(line, folder)}\n" for line in lines if line not in _OPTIONS))
    options = [option for line in lines for option in _OPTIONS.get(line, [])]
    if os.environ.get("PIP_NO_INDEX", "").lower() in _TRUE:
        options.append("--no-index")  # uv has no variable for it
    return [
        *(spec["uv"], "pip", "install", "--no-progress", "--color", "never", "--python", str(venv / "bin" / "python")),
        *("-r", str(requirements), "-c", str(constraints), "--only-binary", ":all:", "--no-compile-bytecode", *options),
    ]


def _absolute(line: str, folder: Path) -> str:
    """Return a line that names a file of the build's folder with that folder in front."""
    return f"{folder}{line[1:]}" if line.startswith("./") else line


def _answer(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def note_installed(packages: Path, site: Sequence[str]) -> None:
    """Tell uv what the environment sees of the server's packages.

    uv looks for installed packages in the environment's own folder only. It gets the metadata of the others, with a
    record that lists nothing else: what it replaces, it does not touch.
    """
    for folder in site:
        for info in Path(folder).glob("*.dist-info"):
            note = packages / info.name
            if (info / "METADATA").is_file() and not note.exists():
                note.mkdir()
                (note / "INSTALLER").write_text("pliant\n")
                names = ["INSTALLER", "RECORD"]
                for name in ("METADATA", "entry_points.txt"):
                    if (info / name).is_file():
                        shutil.copyfile(info / name, note / name)
                        names.append(name)
                (note / "RECORD").write_text("".join(f"{info.name}/{name},,\n" for name in names))


def compile_packages(packages: Path) -> None:
    """Compile what was installed, since those who use it cannot write there; nothing of it is run.

    The server's own interpreter does it, without the passwords of an index, and what cannot be compiled stays as it is.
    """
    command = [sys.executable, "-I", "-m", "compileall", "-qq", str(packages)]
    subprocess.run(
        command, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )


def _num_bytes(folder: Path) -> int:
    files = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return sum(file.lstat().st_size for file in files)


if __name__ == "__main__":
    sys.exit(main())
