"""What a job's environment means, and the interpreters of environments that somebody else made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pliant.catalog.environments.interpreters import EnvironmentNotFound, find_conda, require_outside
from pliant.catalog.environments.look_program import Place, Sight, look
from pliant.catalog.environments.source import Conda, Named, RequirementsFile, Venv, parse_source
from pliant.core.errors import Problem


def interpreter(prefix: Path) -> Path:
    python = prefix / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def conda_environment(prefix: Path) -> Path:
    (prefix / "conda-meta").mkdir(parents=True)
    return interpreter(prefix)


def test_what_a_string_means() -> None:
    assert parse_source("nlp-1.0") == Named("nlp-1.0")
    assert parse_source("/venvs/a") == Venv("/venvs/a")
    assert parse_source("conda:base") == Conda("base")
    assert parse_source("conda:/opt/conda/envs/x") == Conda("/opt/conda/envs/x")
    assert parse_source("requirements:a/b.txt") == RequirementsFile("a/b.txt")
    for wrong in ("requirements:", "conda:", "conda:../x", "../venv", "two words", "-x", "a:b", "ü"):
        assert isinstance(parse_source(wrong), Problem), wrong


def sight(python: Path, *base: Path) -> Sight:
    where = [str(path) for path in base]
    return Sight(prefix=str(python.parents[1]), python=str(python), base=where, fingerprint="", problem="")


def seen(place: Place) -> Sight:
    """Return what lies at a place, but for its fingerprint."""
    found = look(place)
    assert len(found["fingerprint"]) == 64
    return {**found, "fingerprint": ""}


def test_a_fingerprint_tells_what_was_installed_removed_or_made_anew(tmp_path: Path) -> None:
    def fingerprint() -> str:
        return look(Place(kind="venv", path=str(tmp_path)))["fingerprint"]

    python = interpreter(tmp_path)
    (tmp_path / "pyvenv.cfg").touch()
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "torch").mkdir(parents=True)
    seen_so_far = {fingerprint()}
    assert fingerprint() in seen_so_far
    (packages / "__pycache__").mkdir()
    assert fingerprint() in seen_so_far
    changes: tuple[Callable[[], object], ...] = (
        (packages / "torch" / "__init__.py").touch,
        (packages / "torch-2.9.dist-info").mkdir,
        (packages / "torch-2.9.dist-info").rmdir,
        lambda: python.write_text("#!/bin/bash\n"),
        python.with_name("python3").touch,
    )
    news = []
    for change in changes:
        change()
        news.append(fingerprint() not in seen_so_far)
        seen_so_far.add(fingerprint())
    assert news == [True, True, False, True, False]


def test_a_virtual_environment_is_named_by_its_folder_or_its_python(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "link").symlink_to(tmp_path / "venv")
    for path in ("venv", "venv/bin/python", "link", "link/bin/python"):
        assert seen(Place(kind="venv", path=str(tmp_path / path))) == sight(python)


def test_what_the_interpreter_leads_to_counts_if_it_is_a_python_with_its_libraries(tmp_path: Path) -> None:
    base = interpreter(tmp_path / "base")
    (tmp_path / "base" / "bin" / "python3.11").hardlink_to(base)
    (tmp_path / "secret").touch(0o700)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    python = tmp_path / "venv" / "bin" / "python"
    python.symlink_to(tmp_path / "base" / "bin" / "python3.11")
    asked = Place(kind="venv", path=str(tmp_path / "venv"))
    assert seen(asked) == sight(python), "it has no libraries"
    (tmp_path / "base" / "lib").mkdir()
    assert seen(asked) == sight(python, python.resolve(), tmp_path / "base" / "lib")
    python.unlink()
    python.symlink_to(tmp_path / "secret")
    assert seen(asked) == sight(python), "it is no Python"


def problem(kind: str, path: Path) -> str:
    found = look(Place(kind=kind, path=str(path)))
    assert (found["prefix"], found["python"]) == ("", "")
    return found["problem"]


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv")
    assert "is not there" in problem("venv", tmp_path / "other")
    assert "has no bin/python" in problem("venv", tmp_path)
    assert "has no pyvenv.cfg" in problem("venv", tmp_path / "venv")
    assert "no folder conda-meta" in problem("conda", tmp_path / "venv")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert "no folder conda-meta" in problem("conda", tmp_path / "venv")
    python.chmod(0o644)
    assert "not a program" in problem("venv", tmp_path / "venv")


def test_what_lies_in_the_servers_folder_or_above_it_is_no_environment(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "other-way").symlink_to(home)
    for path in (home, home / "jobs" / "job-1" / "code", home / "x" / ".." / "y", tmp_path, "/", "relative", "/a\0"):
        with pytest.raises(EnvironmentNotFound):
            require_outside(str(path), home)
    with pytest.raises(EnvironmentNotFound, match="Pliant's own folder"):
        require_outside(str(home / "jobs"), tmp_path / "other-way")
    require_outside(str(tmp_path / "home-of-others"), home)


def test_a_conda_environment_is_found_by_path_and_by_name(tmp_path: Path) -> None:
    root = tmp_path / "opt" / "conda"
    base, named = conda_environment(root), conda_environment(root / "envs" / "nlp")
    elsewhere = conda_environment(tmp_path / "elsewhere" / "vision")
    listed = conda_environment(tmp_path / "listed" / "old")
    (tmp_path / "home" / ".conda").mkdir(parents=True)
    (tmp_path / "home" / ".conda" / "environments.txt").write_text(f"{tmp_path / 'listed' / 'old'}\n/gone\n")
    env = {
        "CONDA_EXE": str(root / "bin" / "conda"),
        "CONDA_ENVS_PATH": str(tmp_path / "elsewhere"),
        "HOME": str(tmp_path / "home"),
    }
    assert find_conda("nlp", env) == str(named.parents[1])
    assert find_conda("base", env) == str(base.parents[1])
    assert find_conda("vision", env) == str(elsewhere.parents[1])
    assert find_conda("old", env) == str(listed.parents[1])
    assert find_conda("base", {"CONDA_PREFIX": str(root / "envs" / "nlp")}) == str(base.parents[1])
    assert seen(Place(kind="conda", path=find_conda("nlp", env))) == sight(named)
    with pytest.raises(EnvironmentNotFound, match=r"no conda environment 'x' here \(conda, nlp, old, vision found\)"):
        find_conda("x", env)
    with pytest.raises(EnvironmentNotFound, match="none at all"):
        find_conda("nlp", {})
