"""The grammar of IBM's `args`: known options, and what goes to the person's program. Pure.

`parse` raises `InvalidInput` with every problem, and nothing else, whatever the text is.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pliant.core.errors import InvalidInput, Problem
from pliant.core.secret_names import hide_secrets
from pliant.ibm.rest.translate.flags import FLAGS, Flag, Support, Takes

MAX_CHARACTERS = 100_000
QUOTE = "_QUOTE_"
"""Stands for a double quote, for clients that cannot send one."""
END = "--"
ENVIRONMENT = "--msd-env"
HIDDEN = "***"
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\\r?\n|\\.""", re.DOTALL)
"""What a shell reads as one: a quoted text, or a backslash with what it keeps."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a text of arguments asks for."""

    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values of each known option that was given, by its name with dashes; of one without value an empty one."""
    program: tuple[str, ...] = ()
    """What belongs to the person's program: what is unknown, and all after `--`, in order."""
    command: tuple[str, ...] = ()
    """The words after `--` alone."""
    shown: str = ""
    """The text as it may be kept and shown: without secrets."""

    def get(self, name: str) -> str | None:
        """Return the last value of an option; None if it was not given."""
        values = self.options.get(name)
        return values[-1] if values else None

    def whole(self, name: str) -> int | None:
        """Return the value of an option that takes a whole number."""
        text = self.get(name)
        return None if text is None else int(text)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """A sentence for every option that was given and means nothing here."""
        given = [FLAGS[name] for name in self.options if FLAGS[name].support is Support.NO]
        return tuple(f"{flag.name} is accepted and has no effect: {flag.how}" for flag in given)


def parse(text: str) -> Arguments:
    """Return what a text of arguments asks for.

    Raises:
        InvalidInput: with every option that lacks its value or has a wrong one, or the quote that is not closed.
    """
    words = split_words(text)
    end = words.index(END) if END in words else len(words)
    options: dict[str, tuple[str, ...]] = {}
    program: list[str] = []
    shown: list[str] = []
    problems: list[Problem] = []
    hides, place = False, 0
    while place < end:
        name, sign, attached = words[place].partition("=")
        flag = FLAGS.get(name)
        place += 1
        if flag is None:
            program.append(words[place - 1])
            shown.append(words[place - 1])
            continue
        value = attached if sign else ""
        if flag.takes is not Takes.NOTHING and not sign and place < end and words[place] not in FLAGS:
            value = words[place]
            place += 1
        if message := _problem(flag, value):
            problems.append(Problem(field=flag.name, message=message))
        options[flag.name] = (*options.get(flag.name, ()), value)
        safe = _without_secret(flag, value)
        hides |= safe != value
        shown += [flag.name] if flag.takes is Takes.NOTHING else [flag.name, safe]
    if problems:
        raise InvalidInput(*problems)
    rest = words[end + 1 :]
    return Arguments(
        options=options,
        program=(*program, *rest),
        command=rest,
        shown=shlex.join((*shown, *words[end:])) if hides else text,
    )


def _without_secret(flag: Flag, value: str) -> str:
    """Return a value as it may be shown; of a variable's only what is secret in it is hidden."""
    if flag.secret:
        return HIDDEN
    if flag.name != ENVIRONMENT:
        return value
    name, sign, text = value.partition("=")
    return f"{name}{sign}{hide_secrets({name: text})[name]}"


def split_words(text: str, *, field: str = "args") -> tuple[str, ...]:
    """Return the words of a command line, as a POSIX shell quotes them. It runs nothing and expands nothing.

    Raises:
        InvalidInput: a quote is not closed, a backslash is the last character, or it is too long or holds a NUL.
    """
    if len(text) > MAX_CHARACTERS:
        raise _wrong(field, f"it has {len(text)} characters; {MAX_CHARACTERS} are the most")
    if "\0" in text:
        raise _wrong(field, "it holds a NUL character, which no program can be given; remove it")
    text = text.replace(QUOTE, '"')
    try:
        return tuple(shlex.split(_QUOTED.sub(_as_shlex_reads_it, text)))
    except ValueError as error:
        opened = re.search(r"['\"]", _QUOTED.sub(lambda closed: "_" * len(closed[0]), text))
        if opened is None:
            message = "it ends with a backslash, which keeps nothing; remove it, or write two"
            raise _wrong(field, message) from error
        near = text[opened.start() : opened.start() + 40]
        message = f"the quote at character {opened.end()} is not closed ({near!r}); close it, or put a \\ before it"
        raise _wrong(field, message) from error


def _as_shlex_reads_it(quoted: re.Match[str]) -> str:
    """Resolve what `shlex` leaves: a backslash that joins two lines, or keeps a `$` or a backquote in double quotes."""
    text = quoted[0]
    if text.startswith('"'):
        return re.sub(r"\\(\r?\n|.)", _resolve_in_double_quotes, text, flags=re.DOTALL)
    return "" if text.endswith("\n") and text.startswith("\\") else text


def _resolve_in_double_quotes(kept: re.Match[str]) -> str:
    if kept[1].endswith("\n"):
        return ""
    return kept[1] if kept[1] in "$`" else kept[0]


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput.at(field, message)


def _problem(flag: Flag, value: str) -> str:
    """Return what is wrong with the value of an option; empty if nothing is."""
    if flag.takes is Takes.NOTHING:
        return f"it takes no value, but has {value!r}; leave that out" if value else ""
    if not value:
        return f"its value is missing; give {flag.takes.value} after it"
    if flag.choices and value not in flag.choices:
        return f"{value!r} is none of {', '.join(flag.choices)}; give one of them"
    if flag.takes is Takes.WHOLE and not _WHOLE.fullmatch(value):
        return f"{value!r} is not a whole number; give one"
    if flag.takes is Takes.AMOUNT and not _AMOUNT.fullmatch(value):
        return f"{value!r} is not a number; give one"
    return ""


def pairs(text: str, *, field: str) -> Mapping[str, str]:
    """Return what `NAME=VALUE,NAME=VALUE` holds.

    Raises:
        InvalidInput: a part has no `=`.
    """
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign or not name:
            raise InvalidInput.at(field, f"{part!r} is not NAME=VALUE; write it like that")
        found[name] = value
    return found


def variables(texts: Sequence[str], *, field: str) -> Mapping[str, str]:
    """Return the environment that `NAME=VALUE` texts set.

    Raises:
        InvalidInput: with every one that is not of this form.
    """
    problems: list[Problem] = []
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if sign and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            found[name] = value
        else:
            problems.append(Problem(field=field, message=f"{text[:100]!r} is not NAME=VALUE; write it like that"))
    if problems:
        raise InvalidInput(*problems)
    return found
