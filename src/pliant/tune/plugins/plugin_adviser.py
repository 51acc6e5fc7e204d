"""The server's end of an algorithm of somebody's own (`PluginAdviser`): it believes nothing of what it is answered.

The process has loaded a stranger's code, which may write into its socket whatever it likes. So answers are short, and
values are ones that the search chooses from; what is kept and shown is text that can be.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from pliant.core.search import Trial
from pliant.core.space import Values, applies
from pliant.core.space_rules import problems_of_values
from pliant.tune.advice import AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted, Judgement
from pliant.tune.adviser_process import AdviserProcess, AdviserProgram
from pliant.tune.plugins.failures import shown

DEADLINE_S: Final = 300.0
MAX_ANSWER_BYTES: Final = 12 << 20
MAX_STATE_BYTES: Final = 8 << 20
MAX_ATTRIBUTES_BYTES: Final = 1 << 20
_MAX_MESSAGE: Final = 2000
_MAX_REASON: Final = 300


class PluginAdviser:
    """An `Adviser` in a process that runs a stranger's code. For one caller at a time."""

    def __init__(self, opening: AdviserInput, program: AdviserProgram) -> None:
        """Start the process; do not wait until it is ready.

        Args:
            opening: what it is made from.
            program: `pliant.entry.plugin`, within its walls; errors call it as it says.

        Raises:
            AdviserLost: it cannot be started.
        """
        self._who = program.called
        self._space = opening.settings.parameters
        most = min(program.max_answer_bytes, MAX_ANSWER_BYTES)
        self._process = AdviserProcess(opening, replace(program, max_answer_bytes=most))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        with self._messages():
            answer = self._process.ask(number, changed, given)
            if isinstance(answer, Exhausted):
                return Exhausted(reason=shown(answer.reason, _MAX_REASON))
            self._check_state(answer.state)
            self._check_attributes(answer.attributes, number)
            return replace(answer, values=self._checked(answer.values))

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        with self._messages():
            judgement = self._process.judge(number, changed)
            return replace(judgement, reason=shown(judgement.reason, _MAX_REASON))

    def importances(self) -> Mapping[str, float]:
        raise AdviserFailure(f"{self._who} is not asked how important parameters are")

    def close(self) -> None:
        """End the process; does nothing if it has been ended."""
        self._process.close()

    @contextmanager
    def _messages(self) -> Iterator[None]:
        """Let errors be such that they can be kept and shown."""
        try:
            yield
        except AdviserFailure as error:
            raise AdviserFailure(shown(str(error), _MAX_MESSAGE)) from error
        except AdviserLost as error:
            raise AdviserLost(shown(str(error), _MAX_MESSAGE)) from error

    def _checked(self, values: Values) -> Values:
        """Return values in the order of the space, if they are what is chosen from."""
        wrong = [f"{shown(one.field, 80)}: {one.message}" for one in problems_of_values(self._space, values)]
        for name, parameter in self._space.items():
            if applies(parameter, values) is not (name in values):
                wrong.append(f"{name}: a value is {'missing' if name not in values else 'there, and should not be'}")
        if wrong:
            raise AdviserFailure(f"{self._who} answers with values that cannot be: {'; '.join(wrong[:5])}")
        return {name: values[name] for name in self._space if name in values}

    def _check_state(self, state: str) -> None:
        if len(state) > MAX_STATE_BYTES or not state.isascii() or not state.isprintable():
            what = f"{len(state):,} characters; {MAX_STATE_BYTES:,} of ASCII are the most"
            raise AdviserFailure(f"{self._who} answers with a state that cannot be kept, of {what}")

    def _check_attributes(self, attributes: Mapping[int, Mapping[str, Any]], number: int) -> None:
        try:
            text = json.dumps([*attributes.values()], allow_nan=False)
        except (ValueError, RecursionError) as error:
            raise AdviserFailure(f"{self._who} notes with a trial what cannot be kept: {error!s:.200}") from error
        if len(text) > MAX_ATTRIBUTES_BYTES or "\\u0000" in text:
            raise AdviserFailure(f"{self._who} notes {len(text):,} bytes with trials; {MAX_ATTRIBUTES_BYTES:,} of text")
        if attributes and not 0 <= min(attributes) <= max(attributes) <= number:
            raise AdviserFailure(f"{self._who} notes something with a trial that is not there")
