"""Asks the adviser of one search: for the values of its next trials, and whether trials should end early.

A thread of its own per search, since an answer may take seconds; it holds no lock while it waits. Every answer is
written together with the trial that it makes and with what the sampler continues from. So whoever comes after a killed
server asks for the trial that was not written, from the state before, and is answered the same.

    ask 7     values, state        written: trial 7, the state after it            killed here: trial 7 is there
    ask 8     values, state        killed here: trial 8 is asked for again, from the state after trial 7
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.core.errors import PliantError
from pliant.core.search import SearchState, Trial, TrialState
from pliant.policy.tuning.advance import SearchStep, as_seen, bracket_to_ask, end
from pliant.tune.advice import Adviser, AdviserFailure, AdviserLost, Asked, Exhausted, Judgement, Opening
from pliant.tune.searches.book import OpenSearch, SearchBook
from pliant.tune.searches.ports import SearchPorts

log = logging.getLogger(__name__)

_IDLE_S: Final = 30.0
"""An adviser that nobody has asked for so long is ended; another one continues."""
_MAX_LOST: Final = 3
"""After so many advisers in a row that were lost with the same question a search fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked next."""

    number: int
    """Of a trial to come; or of one that is judged."""
    bracket: int | None
    """Of a trial to come; None: a trial is judged."""


class Asker:
    """Keeps asking for one search, for as long as there is something to ask.

    Args:
        asked: called after an answer was written.
    """

    def __init__(self, name: str, book: SearchBook, ports: SearchPorts, asked: Callable[[], None]) -> None:
        self._name = name
        self._book = book
        self._ports = ports
        self._asked = asked
        self._adviser: Adviser | None = None
        self._told: list[Trial] = []
        """All trials as the adviser knows them, by number."""
        self._judged: dict[int, int] = {}
        """Up to which epoch or step each trial was judged."""
        self._num_lost = 0
        self._wake = threading.Event()
        self._closed = False
        self.ended = threading.Event()
        threading.Thread(target=self._run, name=f"pliant-ask-{name}", daemon=True).start()

    def wake(self) -> None:
        """See whether there is something to ask; from any thread."""
        self._wake.set()

    def close(self) -> None:
        """End it, and its adviser; an answer that is under way is dropped."""
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._closed and self._wake.wait(_IDLE_S):
                self._wake.clear()
                while not self._closed and (question := self._question()) is not None:
                    self._ask_safely(question)
        except PliantError as error:
            log.warning("nothing can be asked for the search %s now, it is tried again: %s", self._name, error)
        except Exception:
            log.exception("nothing could be asked for the search %s; it is tried again", self._name)
        finally:
            self._drop()
            self.ended.set()

    def _question(self) -> _Question | None:
        with self._book.lock:
            found = self._book.find(self._name)
            if found is None or found.search.state is not SearchState.RUNNING:
                return None
            if found.search.settings.pruner is not None:
                for trial in found.trials:
                    if trial.state is TrialState.RUNNING and self._is_unjudged(trial):
                        return _Question(number=trial.number, bracket=None)
            bracket = bracket_to_ask(found.search, found.trials, num_places=num_places(found, self._ports))
            return None if bracket is None else _Question(number=found.search.num_trials, bracket=bracket)

    def _is_unjudged(self, trial: Trial) -> bool:
        return bool(trial.reports) and trial.reports[-1][0] > self._judged.get(trial.number, -1)

    def _ask_safely(self, question: _Question) -> None:
        """Ask, and note the answer; a search whose adviser fails has failed."""
        try:
            self._ask(question)
            self._num_lost = 0
        except AdviserFailure as error:
            self._drop()
            self._fail(f"what chooses its values failed: {error}")
        except AdviserLost as error:
            self._drop()
            self._num_lost += 1
            if self._num_lost >= _MAX_LOST:
                self._fail(f"what chooses its values was lost {self._num_lost} times in a row: {error}")

    def _ask(self, question: _Question) -> None:
        with self._book.lock:
            found = self._book.require(self._name)
            adviser, changed = self._ready(found, question)
            given = found.search.enqueued[0] if found.search.enqueued and question.bracket is not None else None
            newest = found.trials[question.number].reports[-1][0] if question.bracket is None else 0
        if question.bracket is None:
            judgement = adviser.judge(question.number, changed)
            self._judged[question.number] = newest
            self._note_judgement(question.number, judgement)
        else:
            answer = adviser.ask(question.number, changed, given)
            self._note_answer(question, answer, is_given=given is not None)
        self._asked()

    def _ready(self, found: OpenSearch, question: _Question) -> tuple[Adviser, Sequence[Trial]]:
        """Return the adviser, made if there is none, and what has changed since it was told last."""
        search, bracket = found.search, question.bracket
        seen = found.trials if bracket is None else [as_seen(search, trial, bracket) for trial in found.trials]
        if self._adviser is None:
            state = self._book.sampler_state(self._name)
            opening = Opening(name=search.name, settings=search.settings, trials=tuple(seen), state=state)
            self._adviser, self._told = self._ports.open_adviser(opening), [*seen]
            return self._adviser, ()
        told = len(self._told)
        changed = [trial for trial in seen if trial.number >= told or self._told[trial.number] != trial]
        self._told = [*seen]
        return self._adviser, changed

    def _note_answer(self, question: _Question, answer: Asked | Exhausted, *, is_given: bool) -> None:
        with self._book.lock:
            found = self._book.find(self._name)
            if found is None or found.search.num_trials != question.number:
                self._drop()  # the answer is to a question that is not the next one any more
                return
            step = self._book.begin(found, self._ports.now())
            if isinstance(answer, Exhausted):
                step.decide("ask", answer.reason)
                step.search = replace(step.search, exhausted=answer.reason)
                self._book.commit(step)
                return
            assert question.bracket is not None, "values are of a trial to come"
            _add_trial(step, answer, question, self._ports, is_given=is_given)
            self._book.commit(step, answer.state)

    def _note_judgement(self, number: int, judgement: Judgement) -> None:
        if not judgement.prune:
            return
        with self._book.lock:
            found = self._book.find(self._name)
            if found is None or found.trials[number].state is not TrialState.RUNNING:
                return
            step = self._book.begin(found, self._ports.now())
            trial = found.trials[number]
            results = (trial.reports[-1][1],) if trial.reports else None
            pruned = replace(trial, state=TrialState.PRUNED, reason=judgement.reason, results=results)
            step.decide("prune", judgement.reason, pruned)
            self._book.commit(step)

    def _fail(self, reason: str) -> None:
        with self._book.lock:
            found = self._book.find(self._name)
            if found is not None and found.search.state is SearchState.RUNNING:
                step = self._book.begin(found, self._ports.now())
                end(step, SearchState.FAILED, reason)
                self._book.commit(step)
        self._asked()

    def _drop(self) -> None:
        if self._adviser is not None:
            self._adviser.close()
            self._adviser = None


def num_places(found: OpenSearch, ports: SearchPorts) -> int:
    """Return how many trials of a search may train at once."""
    return found.search.settings.parallel or ports.jobs.num_places(found.search.job)


def _add_trial(
    step: SearchStep, answer: Asked, question: _Question, ports: SearchPorts, *, is_given: bool
) -> None:
    """Note a new trial, and what the sampler has noted with others."""
    assert question.bracket is not None, "values are of a trial to come"
    for number, attributes in answer.attributes.items():
        if number < question.number:
            step.put(replace(step.trials[number], attributes=attributes))
    search = step.search
    trial = Trial(
        search=search.name,
        number=question.number,
        values=answer.values,
        state=TrialState.RUNNING,
        job_id=ports.jobs.reserve(),
        bracket=question.bracket,
        attributes=answer.attributes.get(question.number, {}),
        begun_at=step.now,
    )
    step.trials.append(trial)
    enqueued = search.enqueued[1:] if is_given else search.enqueued
    step.search = replace(search, num_trials=question.number + 1, enqueued=enqueued)
    how = "was asked for" if is_given else f"was chosen by {search.settings.sampler.name}"
    values = " ".join(f"{name}={value}" for name, value in trial.values.items())
    step.decide("ask", f"{values} {how}", trial)
