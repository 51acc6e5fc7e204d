"""Requirements files: read, checked and brought to one normal form, so that what means the same has the same key.

What a requirement is (PEP 508) `packaging` knows; here is what pip adds to it: comments, lines that go on, files that
include others, options, hashes and paths of wheels.

Refused is what would let a submission choose where the server fetches from, read files or secrets of the server's, or
run code of others outside a slot: options for indexes, URLs, version control, editable and local projects, variables
of the environment. Wheels that lie in the code folder are allowed. It runs nothing and asks no network.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pliant.catalog.environments.code_folder import CodeFolder, UnreadableFile, normal_name
from pliant.core.errors import InvalidInput, Problem

MAX_BYTES: Final = 256 << 10
MAX_WHEEL_BYTES: Final = 4 << 30
MAX_LINES: Final = 2000
MAX_FILES: Final = 20
MAX_PROBLEMS: Final = 20
WHEELS: Final = "wheels"
"""In the folder of a build, with the wheels of the code folder."""

_HASH: Final = re.compile(r"\s*--hash(?:=|\s+)(\w+:[0-9a-zA-Z]+)(?=\s|$)")
_COMMENT: Final = re.compile(r"(^|\s)#.*$")
_INCLUDE: Final = re.compile(r"(-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?<=-[rc]))(\S.*)")
_HARMLESS: Final = ("--pre", "--prefer-binary", "--require-hashes")
_WHEELS_ONLY: Final = ("--only-binary :all:", "--only-binary=:all:")
_PLACE: Final = re.compile(r"(-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--trusted-host)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel that came with the code."""

    folder: CodeFolder
    path: PurePosixPath
    """Relative to the code folder."""
    digest: str
    """SHA-256, in hex."""

    def copy(self, to: Path) -> None:
        """Copy it to a new file.

        Raises:
            InvalidInput: it is not what it was when it was read.
            OSError: it cannot be written.
        """
        try:
            digest = self.folder.copy(str(self.path), to, MAX_WHEEL_BYTES)
        except UnreadableFile as error:
            raise InvalidInput.at("environment", f"{self.path}: {error}") from error
        if digest != self.digest:
            raise InvalidInput.at("environment", f"{self.path} was changed while it was read; submit the job again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """A requirements file in its normal form."""

    lines: tuple[str, ...]
    """Options first, then requirements in order of name; no comments, one space where there is any."""
    constraints: tuple[str, ...] = ()
    wheels: tuple[Wheel, ...] = ()

    @property
    def text(self) -> str:
        """The file that the builder is given; wheels lie in a folder `wheels` beside it."""
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def source(self) -> str:
        """The same for people, with the constraints."""
        return self.text + "".join(f"-c {line}\n" for line in self.constraints)

    def key(self, *context: str) -> str:
        """Return the digest of this and of all else that decides what comes out."""
        wheels = sorted((wheel.path.name, wheel.digest) for wheel in self.wheels)
        facts = [self.lines, self.constraints, wheels, context]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def are_personal(text: str) -> bool:
    """Tell whether requirements in their normal form name files of a code folder, so that people cannot share them."""
    return any(line.startswith(f"./{WHEELS}/") for line in text.splitlines())


def read_requirements(folder: Path, file: str) -> Requirements:
    """Return the requirements in a file of a code folder, and in those that it includes.

    Raises:
        InvalidInput: with everything that is wrong with them.
    """
    reader = _Reader(folder=CodeFolder(folder))
    reader.read(PurePosixPath(), file, file)
    return reader.result()


def parse_requirements(text: str) -> Requirements:
    """Return the requirements in a text that came without files.

    Raises:
        InvalidInput: with everything that is wrong with them.
    """
    reader = _Reader(folder=None)
    reader.take(text, "requirements", None)
    return reader.result()


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Collects lines and problems of a file and its includes."""

    folder: CodeFolder | None
    lines: set[str] = field(default_factory=set)
    constraints: set[str] = field(default_factory=set)
    wheels: dict[str, Wheel] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    seen: set[tuple[PurePosixPath, bool]] = field(default_factory=set)

    def result(self) -> Requirements:
        if len(self.lines) + len(self.constraints) > MAX_LINES:
            self.refuse("requirements", f"there are more than {MAX_LINES} requirements; leave out what others bring")
        if self.problems:
            raise InvalidInput(*self.problems[:MAX_PROBLEMS])
        return Requirements(
            lines=tuple(sorted(self.lines, key=lambda line: (not line.startswith("-"), line))),
            constraints=tuple(sorted(self.constraints)),
            wheels=tuple(self.wheels[name] for name in sorted(self.wheels)),
        )

    def refuse(self, where: str, message: str) -> None:
        self.problems.append(Problem(field="environment", message=f"{where}: {message}"))

    def read(self, beside: PurePosixPath, name: str, shown: str, *, constrains: bool = False) -> None:
        found = normal_name(beside, name)
        if self.folder is None or found is None:
            self.refuse(shown, "it lies outside the code folder; put it there and name it relative to it")
        elif (found, constrains) not in self.seen:
            self.seen.add((found, constrains))
            if len(self.seen) > MAX_FILES:
                self.refuse(shown, f"more than {MAX_FILES} files are included; put them together")
                return
            try:
                text = self.folder.read(str(found), MAX_BYTES).decode("utf-8-sig")
            except UnreadableFile as error:
                self.refuse(shown, str(error))
            except UnicodeDecodeError as error:
                self.refuse(shown, f"it is not UTF-8 ({error.reason} at byte {error.start}); save it as that")
            else:
                self.take(text, shown, found.parent, constrains=constrains)

    def take(self, text: str, shown: str, beside: PurePosixPath | None, *, constrains: bool = False) -> None:
        for number, line in _logical_lines(text):
            where = f"{shown}, line {number}"
            if include := _INCLUDE.fullmatch(line):
                self._take_include(include[1], include[2].strip(), where, beside, constrains=constrains)
            elif line.startswith("-"):
                self._take_option(line, where)
            elif message := _refusal(line):
                self.refuse(where, message)
            elif _is_path(line):
                self._take_wheel(line, where, beside, constrains=constrains)
            else:
                self._take_requirement(line, where, constrains=constrains)

    def _take_include(
        self, option: str, name: str, where: str, beside: PurePosixPath | None, *, constrains: bool
    ) -> None:
        if beside is None or "://" in name:
            self.refuse(where, f"{name!r} cannot be included: only files of a code folder can; write its lines here")
            return
        self.read(beside, name, name, constrains=constrains or option in ("-c", "--constraint"))

    def _take_option(self, line: str, where: str) -> None:
        if line in _HARMLESS:
            self.lines.add(line)
        elif line not in _WHEELS_ONLY:
            self.refuse(where, _option_refusal(line))

    def _take_wheel(self, line: str, where: str, beside: PurePosixPath | None, *, constrains: bool) -> None:
        if beside is None or self.folder is None or constrains:
            self.refuse(where, f"{line!r} is a file, and there are none here; submit it with the code")
            return
        path = normal_name(beside, line)
        if path is None:
            self.refuse(where, f"{line!r} lies outside the code folder; put it there")
        elif path.suffix != ".whl":
            self.refuse(where, f"{line!r} is no wheel in the code folder; build one (`python -m build`), put it there")
        else:
            self._keep_wheel(self.folder, path, line, where)

    def _keep_wheel(self, folder: CodeFolder, path: PurePosixPath, line: str, where: str) -> None:
        try:
            wheel = Wheel(folder=folder, path=path, digest=folder.digest(str(path), MAX_WHEEL_BYTES))
        except UnreadableFile as error:
            self.refuse(where, f"{line!r} is no wheel that can be read: {error}")
            return
        if self.wheels.setdefault(path.name, wheel).digest != wheel.digest:
            self.refuse(where, f"there are two different wheels {path.name!r}; remove one")
        self.lines.add(f"./{WHEELS}/{path.name}")

    def _take_requirement(self, line: str, where: str, *, constrains: bool) -> None:
        written = line.partition(" --hash")[0]
        try:
            normal = _normalize(Requirement(written))
        except InvalidRequirement:
            self.refuse(where, f"{line!r:.200} is no requirement; write it like `name==1.2`")
            return
        hashes, rest = _HASH.findall(line[len(written) :]), _HASH.sub("", line[len(written) :]).strip()
        if rest:
            self.refuse(where, f"{rest!r:.60} is not known behind a requirement, only --hash=KIND:DIGEST; leave it out")
            return
        (self.constraints if constrains else self.lines).add(" ".join([normal, *(f"--hash={h}" for h in hashes)]))


def _normalize(requirement: Requirement) -> str:
    """Return a requirement as one of all that mean the same is written; an address was refused before."""
    assert requirement.url is None
    extras = ",".join(sorted(canonicalize_name(extra) for extra in requirement.extras))
    marker = f" ; {requirement.marker}" if requirement.marker is not None else ""
    name = canonicalize_name(requirement.name)
    return f"{name}{f'[{extras}]' if extras else ''}{requirement.specifier}{marker}"


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the content of every line that says something; a backslash joins the next one to it."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate((*text.splitlines(), ""), start=1):
        if not parts:
            first = number
        bare = _COMMENT.sub("", line)
        parts.append(bare.removesuffix("\\"))
        if bare.endswith("\\"):
            continue
        if joined := " ".join(" ".join(parts).split()):
            yield first, joined
        parts = []


def _is_path(line: str) -> bool:
    target = line.partition(";")[0].strip()
    return target.startswith((".", "/", "~")) or target.endswith((".whl", ".zip", ".tar.gz")) or "/" in target


def _refusal(line: str) -> str:
    """Return why a line is refused before it is parsed; empty if it is not."""
    if "${" in line:
        return "variables are not filled in: they would come from the server's own environment; write the value"
    if "://" in line or line.startswith(("file:", "git+", "hg+", "svn+", "bzr+")) or re.search(r"\w\s*@", line):
        return (
            "packages are fetched from the server's index only, not from an address; put a wheel into the code folder "
            "and name it here"
        )
    return ""


def _option_refusal(line: str) -> str:
    option = re.split(r"[ =]", line, maxsplit=1)[0]
    if _PLACE.match(line):
        return (
            f"{option} is refused: the server's administrator decides where packages come from (PIP_INDEX_URL and the "
            f"like in the server's environment); leave it out"
        )
    if option in ("-e", "--editable"):
        return f"{option} is refused: code of the folder can be imported as it is, and nothing is built; leave it out"
    if option in ("--no-binary", "--only-binary"):
        return f"{option} is refused: only wheels are installed, nothing is compiled on the server; leave it out"
    return f"the option {option!r:.60} is not known here; leave it out"
