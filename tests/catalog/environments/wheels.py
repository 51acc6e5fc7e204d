"""Wheels that tests make themselves, and an environment that knows of no other place to fetch from."""

import base64
import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def tiny_wheel(
    folder: Path,
    *,
    name: str = "tinything",
    version: str = "1.0",
    needs: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write a wheel with one module, whose `ANSWER` is its version, and with these files more."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": f"ANSWER = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **more,
    }
    lines = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def offline(wheels: Path) -> dict[str, str]:
    """Return what makes builders know of one folder only."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
