"""What an environment is built for, and whether it works on another machine as it is (`EnvironmentPlatform`)."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPlatform:
    """What of a machine the environments that are built there depend on."""

    machine: str
    """Its architecture, such as `x86_64`."""
    libc: str
    """Its C library, such as `glibc`; empty: it is not known."""
    libc_version: str
    abi: str
    """For which Python compiled modules are made, such as `cpython-311-x86_64-linux-gnu`."""
    python: str
    """The interpreter that environments lead to, a whole path."""
    real_python: str
    """The same without links."""
    site: tuple[str, ...]
    """Folders of packages that environments see after their own: Pliant, torch and all that is installed with them."""

    def difference(
        self, here: "EnvironmentPlatform", real: Callable[[str], str], is_folder: Callable[[str], bool]
    ) -> str:
        """Return why what was built for this platform does not work on another machine, in words; empty: it does.

        Args:
            here: what that machine has.
            real: returns a path of that machine's without links.
            is_folder: tells whether that machine has a folder at a path.
        """
        if self.machine != here.machine:
            return f"it was built for {self.machine}, and this machine is {here.machine}"
        if self.libc != here.libc or _numbers(self.libc_version) > _numbers(here.libc_version):
            there, ours = (" ".join((one.libc or "another C library", one.libc_version)) for one in (self, here))
            return f"it was built for {there.strip()}, and this machine has {ours.strip()}"
        if self.abi != here.abi:
            return f"it was built for {self.abi}, and Pliant runs here with {here.abi}"
        if not self.real_python == here.real_python == real(self.python):
            return f"it was built for {self.python}, and Pliant runs here with {here.real_python}"
        if missing := [folder for folder in self.site if not is_folder(folder)]:
            return f"it sees the packages in {missing[0]}, which is not on this machine"
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
