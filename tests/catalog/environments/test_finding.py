"""What a job's environment means, and the interpreters of environments that somebody else made."""

from pathlib import Path

import pytest

from pliant.catalog.environments.finding import NotThere, python_of_conda, python_of_venv
from pliant.catalog.environments.source import Conda, Named, RequirementsFile, Virtual, source_of
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
    assert source_of("nlp-1.0") == Named("nlp-1.0")
    assert source_of("/venvs/a") == Virtual("/venvs/a")
    assert source_of("conda:base") == Conda("base")
    assert source_of("conda:/opt/conda/envs/x") == Conda("/opt/conda/envs/x")
    assert source_of("requirements:a/b.txt") == RequirementsFile("a/b.txt")
    for wrong in ("requirements:", "conda:", "conda:../x", "../venv", "two words", "-x", "a:b", "ü"):
        assert isinstance(source_of(wrong), Problem), wrong


def test_a_virtual_environment_is_named_by_its_folder_or_its_python(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv")
    assert python_of_venv(str(tmp_path / "venv")) == python_of_venv(str(python)) == str(python)
    with pytest.raises(NotThere, match="is not there"):
        python_of_venv(str(tmp_path / "other"))
    with pytest.raises(NotThere, match="has no bin/python"):
        python_of_venv(str(tmp_path))
    python.chmod(0o644)
    with pytest.raises(NotThere, match="not a program"):
        python_of_venv(str(python))


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
    assert python_of_conda("nlp", env) == python_of_conda(str(root / "envs" / "nlp"), {}) == str(named)
    assert python_of_conda("base", env) == str(base)
    assert python_of_conda("vision", env) == str(elsewhere)
    assert python_of_conda("old", env) == str(listed)
    assert python_of_conda("base", {"CONDA_PREFIX": str(root / "envs" / "nlp")}) == str(base)
    with pytest.raises(NotThere, match=r"no conda environment 'x' here \(conda, nlp, old, vision found\)"):
        python_of_conda("x", env)
    with pytest.raises(NotThere, match="none at all"):
        python_of_conda("nlp", {})
    with pytest.raises(NotThere, match="no folder conda-meta"):
        python_of_conda(str(tmp_path), {})
    named.unlink()
    with pytest.raises(NotThere, match="not a program"):
        python_of_conda("nlp", env)
