"""The process that opens a storage of Optuna's for a command. Not for people to call.

`python -P -m pliant.entry.study`: a request is on standard input, and the answer goes to standard output
(`pliant.tune.study_messages`). Exit codes: 0 after an answer, also if that is a refusal.
"""

import os
import sys
from typing import BinaryIO

from pliant.core.errors import InvalidInput
from pliant.tune.adviser.studies import read_study, write_study
from pliant.tune.study_messages import StudyAnswer, StudyRefusal, WriteStudy, decode_request, encode_answer


def main(source: BinaryIO, answers: BinaryIO) -> int:
    """Answer one request."""
    answers.write(encode_answer(_answer(source.read())))
    answers.flush()
    return 0


def _answer(text: bytes) -> StudyAnswer:
    try:
        request = decode_request(text)
        return write_study(request) if isinstance(request, WriteStudy) else read_study(request)
    except InvalidInput as error:
        (problem,) = error.problems
        return StudyRefusal(field="study" if problem.field == "study" else "storage", message=problem.message)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        sys.exit(main(sys.stdin.buffer, answers))
