"""Names that somebody else chose, as they are shown and packed."""

import re
import unicodedata
from typing import Final

_MAX_SHOWN: Final = 200
_ESCAPED: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_LAST_SIGN: Final = 0x10FFFF


def escape(name: str) -> str:
    r"""Return a name with all that does not show as what it is escaped, as `\x0a` or `\u202e`; `\udcff` is a byte.

    Backslashes are escaped, too, so that no two names become one.
    """
    return "".join(_escape_sign(sign) if _is_hidden(sign) else sign for sign in name)


def unescape(text: str) -> str | None:
    """Return the name that `escape` shows like this; None if it shows none like this."""
    numbers = [int("".join(filter(None, found)), 16) for found in _ESCAPED.findall(text)]
    if any(number > _LAST_SIGN for number in numbers):
        return None
    signs = iter(map(chr, numbers))
    name = _ESCAPED.sub(lambda _: next(signs), text)
    return name if escape(name) == text else None


def shown(name: str) -> str:
    """Return a name for a message."""
    return escape(name[:_MAX_SHOWN])


def _is_hidden(sign: str) -> bool:
    return sign == "\\" or unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape_sign(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
