"""Texts of people and their code as a terminal may show them: without what moves its cursor, changes it or its title,
or hides or turns what stands beside it. What is replaced is seen to have been there.
"""

import re
from typing import Final

_CONTROLS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""All but tab, line feed, carriage return and escape, in the order of their numbers; and what turns the direction."""
_MISLEADING: Final = re.compile(rf"[{_CONTROLS}\x1b\r]")
_COLOUR: Final = r"\x1b\[[0-9;]{0,40}m"
_MISLEADING_IN_LOG: Final = re.compile(rf"(?!{_COLOUR})[{_CONTROLS}\x1b]")
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"


def readable(text: str) -> str:
    """Return a text of sentences.

    >>> readable("red\\x1b[31m\\tand\\nmore")
    'red\N{REPLACEMENT CHARACTER}[31m\\tand\\nmore'
    """
    return _MISLEADING.sub(_REPLACED, text)


def readable_log(line: str) -> str:
    """Return a line of a log, in which colours and progress bars stay what they are.

    >>> readable_log("50 %\\r\\x1b[32m60 %\\x1b[0m\\x1b[2J")
    '50 %\\r\\x1b[32m60 %\\x1b[0m\N{REPLACEMENT CHARACTER}[2J'
    """
    return _MISLEADING_IN_LOG.sub(_REPLACED, line)


def readable_json(text: str) -> str:
    """Return a JSON document of the same value.

    >>> readable_json('{"a": "\\x9b2J"}')
    '{"a": "\\\\u009b2J"}'
    """
    return _MISLEADING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
