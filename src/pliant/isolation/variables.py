"""Which of the server's variables a process gets that runs a person's code: those of a list, and what is added to it.

The server's environment holds keys of clouds, passwords of indexes and of databases. So nothing is passed on because
it is there, as sudo and HTCondor do it; an operator adds names (`--pass-env`).
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

_PASSED: Final = frozenset(
    {
        *("LANG", "LANGUAGE", "TZ", "TERM", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("CUDA_HOME", "CUDA_PATH", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"),
        *("TORCH_CPP_LOG_LEVEL", "THP_MEM_ALLOC_ENABLE", "OMP_PROC_BIND", "OMP_PLACES"),
        *("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"),
    }
)
_BEGINNINGS: Final = ("LC_", "NCCL_", "GLOO_")
_SECRET: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def allowed(env: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Return what of an environment people's code may see: what is harmless, and what an operator named.

    Args:
        env: the server's.
        passed: names to pass on besides. Names of Pliant's own are not.
    """
    return {
        name: value
        for name, value in env.items()
        if not name.startswith("PLIANT_")
        and (name in passed or name in _PASSED or (name.startswith(_BEGINNINGS) and not _SECRET.search(name)))
    }


def refusal(name: str) -> str:
    """Return why an operator cannot pass on a variable of this name, in words; empty if they can."""
    if not NAME.fullmatch(name):
        return f"{name!r:.80} is no name of a variable; give one whole name, no pattern"
    if name.startswith("PLIANT_"):
        return f"{name} is Pliant's own and never passed on; leave it out"
    return ""
