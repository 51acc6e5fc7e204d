"""The process that chooses the values of one search's trials. Not for people to call.

`python -P -m pliant.entry.adviser SOCKET`, with the number of an open socket to who asks
(`pliant.tune.adviser_messages`); standard input stays open as long as that one lives, and nothing comes through it.
Exit codes: 0 when the socket is closed, 3 if who asks is gone.
"""

import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from io import BufferedRWPair
from typing import Final

from pliant.core.errors import PliantError
from pliant.tune.advice import Adviser, AdviserFailure, Exhausted
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser_messages import (
    AskImportances,
    AskJudgement,
    AskValues,
    Begin,
    ExhaustedAnswer,
    FailureAnswer,
    FromAdviser,
    ImportancesAnswer,
    JudgementAnswer,
    ToAdviser,
    ValuesAnswer,
    decode_question,
    encode,
)

MAX_MEMORY_BYTES: Final = 8 << 30
"""Of data, which is what it allocates; the code of torch, and what else is mapped from files, does not count."""


def main(argv: Sequence[str]) -> int:
    """Answer who is at the other end of the socket, whose number is the one argument, until it is gone."""
    (channel,) = argv
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    os.set_inheritable(int(channel), False)
    threading.Thread(target=_end_with_server, daemon=True).start()
    with socket.socket(fileno=int(channel)) as end, end.makefile("rwb") as lines:
        serve(lines)
    return 0


def serve(lines: BufferedRWPair) -> None:
    """Answer questions until there are no more."""
    adviser: Adviser | AdviserFailure = AdviserFailure("no search has begun")
    while line := lines.readline():
        question = decode_question(line)
        if isinstance(question, Begin):
            adviser = _made(question)
            continue
        lines.write(encode(_answer(adviser, question)))
        lines.flush()


def _made(question: Begin) -> OptunaAdviser | AdviserFailure:
    try:
        return OptunaAdviser(question.opening)
    except AdviserFailure as error:
        return error


def _answer(adviser: Adviser | AdviserFailure, question: ToAdviser) -> FromAdviser:
    if isinstance(adviser, AdviserFailure):
        return FailureAnswer(message=str(adviser))
    try:
        return _asked(adviser, question)
    except PliantError as error:
        return FailureAnswer(message=str(error))


def _asked(adviser: Adviser, question: ToAdviser) -> FromAdviser:
    match question:
        case AskValues(number=number, changed=changed, given=given):
            asked = adviser.ask(number, changed, given)
            if isinstance(asked, Exhausted):
                return ExhaustedAnswer(reason=asked.reason)
            return ValuesAnswer(values=asked.values, state=asked.state, attributes=asked.attributes)
        case AskJudgement(number=number, changed=changed):
            judgement = adviser.judge(number, changed)
            return JudgementAnswer(prune=judgement.prune, reason=judgement.reason)
        case AskImportances():
            return ImportancesAnswer(importances=adviser.importances())
        case Begin():
            raise AssertionError("a search begins once")


def _end_with_server() -> None:
    while os.read(0, 4096):
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
