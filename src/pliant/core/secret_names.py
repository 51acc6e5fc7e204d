"""Which names stand for something that nobody but its owner may read, and what is shown in its place."""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "(hidden)"
_SECRET: Final = re.compile(r"(key|token|secret|passw(or)?d|passphrase|credentials?|[_-]pat|[_-]auth)$", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
"""Of a URL."""


def names_secret(name: str) -> bool:
    """Tell whether what is called so is likely a secret, as WANDB_API_KEY is."""
    return _SECRET.search(name) is not None


def hide_password(text: str) -> str:
    """Return a text without the passwords of the URLs in it."""
    return _PASSWORD.sub(rf"\g<1>{HIDDEN}@", text)


def hide_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return variables as they may be shown."""
    return {name: HIDDEN if value and names_secret(name) else hide_password(value) for name, value in env.items()}
