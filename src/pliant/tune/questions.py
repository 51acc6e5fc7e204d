"""Answers the questions that come to an adviser's process (`serve`), and notices that who asks is gone."""

import os
import threading
from collections.abc import Callable
from io import BufferedRWPair

from pliant.core.errors import PliantError
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, Exhausted
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


def serve(lines: BufferedRWPair, make: Callable[[AdviserInput], Adviser]) -> None:
    """Answer questions until there are no more.

    Args:
        lines: to who asks.
        make: makes the adviser; raises AdviserFailure if it cannot.
    """
    adviser: Adviser | AdviserFailure = AdviserFailure("no search has begun")
    while line := lines.readline():
        question = decode_question(line)
        if isinstance(question, Begin):
            adviser = _made(make, question)
            continue
        lines.write(encode(_answer(adviser, question)))
        lines.flush()


def end_with_server(descriptor: int) -> None:
    """End this process with exit code 3 when nobody has the other end of a pipe any more, also while it computes."""
    threading.Thread(target=_end_after, args=(descriptor,), daemon=True).start()


def _end_after(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    finally:  # also if somebody has closed it
        os._exit(3)


def _made(make: Callable[[AdviserInput], Adviser], question: Begin) -> Adviser | AdviserFailure:
    try:
        return make(question.opening)
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
