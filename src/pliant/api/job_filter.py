"""Reads which jobs somebody asks for, as they write it: `state=running,waiting`, `tag=lr=0.1`."""

from collections.abc import Sequence

from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import JOB_KINDS
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import STATE_WORDS, JobState
from pliant.core.near_name import near_name
from pliant.core.tag import MAX_TAG_NAME, MAX_TAG_VALUE

MAX_WORDS = 100
"""For one thing that is asked for."""
_MAX_SHOWN = 80


def read_job_filter(  # noqa: PLR0913 (one parameter per word of the query)
    *,
    states: Sequence[str] = (),
    owners: Sequence[str] = (),
    queues: Sequence[str] = (),
    tags: Sequence[str] = (),
    searches: Sequence[str] = (),
    kinds: Sequence[str] = (),
    text: str = "",
    trials: bool = True,
) -> JobFilter:
    """Return which jobs these texts ask for; each may hold several words between commas.

    Args:
        text: is looked for as it is, commas and all, without the spaces around it.
        trials: trials of searches are among them.

    Raises:
        InvalidInput: with every word that asks for nothing.
    """
    texts = {"state": states, "owner": owners, "queue": queues, "tag": tags, "search": searches, "kind": kinds}
    given = {field: _words(of_field) for field, of_field in texts.items()}
    problems = []
    for field, words in given.items():
        if texts[field] and not words:
            problems.append(Problem(field=field, message="it is empty; give a word, or leave it out"))
        if len(words) > MAX_WORDS:
            problems.append(Problem(field=field, message=f"{len(words)} are asked for; give {MAX_WORDS} at most"))
    chosen: dict[JobState, None] = {}
    for word in given["state"]:
        if (found := STATE_WORDS.get(word)) is None:
            problems.append(_no_state(word))
        else:
            chosen |= dict.fromkeys(found)
    problems += [_no_kind(word) for word in given["kind"] if word not in JOB_KINDS]
    values, wrong = _tags(given["tag"])
    problems += wrong
    if given["search"] and not trials:
        message = f"the trials of {', '.join(map(_shown, given['search']))} are asked for; leave one or the other out"
        problems.append(Problem(field="trials", message=message))
    if problems:
        raise InvalidInput(*problems)
    return JobFilter(
        states=tuple(chosen),
        owners=tuple(given["owner"]),
        queues=tuple(given["queue"]),
        tags=values,
        searches=tuple(given["search"]),
        without_trials=not trials,
        kinds=tuple(kind for kind in JOB_KINDS if kind in given["kind"]),
        text=text.strip(),
    )


def _tags(words: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Return the values of tags that are asked for, by name, and what is no tag."""
    values: dict[str, tuple[str, ...]] = {}
    problems = []
    for word in words:
        name, equals, value = word.partition("=")
        if not name or len(name) > MAX_TAG_NAME or len(value) > MAX_TAG_VALUE:
            problems.append(Problem(field="tag", message=f"{_shown(word)} is no tag; give NAME or NAME=VALUE"))
        elif not equals or values.get(name) == ():
            values[name] = ()
        else:
            values[name] = (*values.get(name, ()), value)
    return values, problems


def unknown_name(what: str, name: str, there: Sequence[str], *, listed: bool = False) -> str:
    """Return that nothing is called so, with the name that was probably meant; and with all names, if `listed`."""
    near = near_name(name, there)
    names = f"; there are {', '.join(there)}" if listed else ""
    return f"there is no {what} {_shown(name)}{names}" + (f"; is {near!r} meant?" if near else "")


def _words(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(word for text in texts for part in text.split(",") if (word := part.strip())))


def _no_state(word: str) -> Problem:
    near = near_name(word.lower(), tuple(STATE_WORDS))
    *most, last = STATE_WORDS
    meant = f"; is {near!r} meant?" if near else ""
    return Problem(field="state", message=f"{_shown(word)} is no state; give {', '.join(most)} or {last}{meant}")


def _no_kind(word: str) -> Problem:
    near = near_name(word.lower(), JOB_KINDS)
    *most, last = JOB_KINDS
    meant = f"; is {near!r} meant?" if near else ""
    return Problem(field="kind", message=f"{_shown(word)} is no kind; give {', '.join(most)} or {last}{meant}")


def _shown(word: str) -> str:
    return repr(word) if len(word) <= _MAX_SHOWN else f"{word[:_MAX_SHOWN]!r}…"
