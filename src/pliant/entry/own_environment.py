"""What environments that are built here build upon, and what of this machine they depend on."""

import importlib.util
import os
import platform
import site
import sys
import sysconfig
from functools import cache
from importlib import metadata
from pathlib import Path

from uv import find_uv_bin

from pliant import __version__
from pliant.catalog.environments.environment import BaseEnvironment
from pliant.core.platform import EnvironmentPlatform


def find_uv() -> str:
    """Return the uv that was installed with Pliant, or else whichever the server's PATH has."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        return "uv"


@cache
def base_environment() -> BaseEnvironment:
    """Return what this interpreter lends to every environment that the server builds."""
    folders = _folders()
    versions = {name: _version(name) for name in ("pliant", "torch")}
    return BaseEnvironment(
        site=folders,
        constraints=tuple(f"{name}=={version}" for name, version in versions.items() if version),
        facts=(
            f"python {platform.python_version()} {sysconfig.get_config_var('SOABI')} {sys.base_prefix}",
            sysconfig.get_platform(),
            f"pliant {__version__}",
            f"torch {versions['torch']}",
            *folders,
        ),
    )


def _folders() -> tuple[str, ...]:
    """Return the folders of packages that this interpreter sees, and those of Pliant and torch wherever they are."""
    found = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    for name in ("pliant", "torch"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found.append(str(Path(spec.submodule_search_locations[0]).parent))
    return tuple(folder for folder in dict.fromkeys(found) if Path(folder).is_dir())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@cache
def own_platform() -> EnvironmentPlatform:
    """Return what environments depend on that are built here or brought here."""
    libc, version = platform.libc_ver()
    python = str(getattr(sys, "_base_executable", "") or sys.executable)  # the one that `python -m venv` links to
    return EnvironmentPlatform(
        machine=platform.machine(),
        libc=libc,
        libc_version=version,
        abi=str(sysconfig.get_config_var("SOABI") or ""),
        python=python,
        real_python=os.path.realpath(python),
        site=base_environment().site,
    )
