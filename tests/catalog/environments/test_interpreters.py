"""What a job's environment means, and the interpreters of environments that somebody else made."""

from pathlib import Path

import pytest

from pliant.catalog.environments.interpreters import EnvironmentNotFound, find_conda_python, find_venv_python
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


def test_a_virtual_environment_is_named_by_its_folder_or_its_python(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv")
    assert find_venv_python(str(tmp_path / "venv")) == find_venv_python(str(python)) == str(python)
    with pytest.raises(EnvironmentNotFound, match="is not there"):
        find_venv_python(str(tmp_path / "other"))
    with pytest.raises(EnvironmentNotFound, match="has no bin/python"):
        find_venv_python(str(tmp_path))
    python.chmod(0o644)
    with pytest.raises(EnvironmentNotFound, match="not a program"):
        find_venv_python(str(python))


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
    assert find_conda_python("nlp", env) == find_conda_python(str(root / "envs" / "nlp"), {}) == str(named)
    assert find_conda_python("base", env) == str(base)
    assert find_conda_python("vision", env) == str(elsewhere)
    assert find_conda_python("old", env) == str(listed)
    assert find_conda_python("base", {"CONDA_PREFIX": str(root / "envs" / "nlp")}) == str(base)
    with pytest.raises(EnvironmentNotFound, match=r"no conda environment 'x' here \(conda, nlp, old, vision found\)"):
        find_conda_python("x", env)
    with pytest.raises(EnvironmentNotFound, match="none at all"):
        find_conda_python("nlp", {})
    with pytest.raises(EnvironmentNotFound, match="no folder conda-meta"):
        find_conda_python(str(tmp_path), {})
    named.unlink()
    with pytest.raises(EnvironmentNotFound, match="not a program"):
        find_conda_python("nlp", env)
