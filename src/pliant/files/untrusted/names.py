"""Names that somebody else chose, as they are shown and packed."""

import unicodedata
from typing import Final

_MAX_SHOWN: Final = 200


def escape(name: str) -> str:
    r"""Return a name with all that does not show as what it is escaped, as `\x0a` or `\u202e`; `\udcff` is a byte.

    Backslashes are escaped, too, so that no two names become one.
    """
    return "".join(_escape_sign(sign) if _is_hidden(sign) else sign for sign in name)


def shown(name: str) -> str:
    """Return a name for a message."""
    return escape(name[:_MAX_SHOWN])


def _is_hidden(sign: str) -> bool:
    return sign == "\\" or unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape_sign(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
