"""Asks the adviser of one search: for the values of its next trials, and whether trials should end early.

No lock is held while it waits for an answer, which may take seconds. Every answer is
written together with the trial that it makes and with what the sampler continues from. So whoever comes after a killed
server asks for the trial that was not written, from the state before, and is answered the same.

    ask 7     values, state        written: trial 7, the state after it            killed here: trial 7 is there
    ask 8     values, state        killed here: trial 8 is asked for again, from the state after trial 7
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.core.search import SearchState, Trial, TrialState
from pliant.policy.tuning.advance import SearchStep, as_seen, begins_together, bracket_to_ask, end
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted, Judgement
from pliant.tune.searches.at_once import find_places
from pliant.tune.searches.book import OpenSearch, SearchBook
from pliant.tune.searches.ports import SearchPorts

_MAX_LOST: Final = 3
"""After so many advisers in a row that were lost with the same question a search fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked next."""

    number: int
    """Of a trial to come; or of one that is judged."""
    bracket: int | None
    """Of a trial to come; None: a trial is judged."""
    created_at: float
    """Of the search: another one may have its name since."""


class Asker:
    """Asks for one search. For one thread at a time."""

    def __init__(self, name: str, book: SearchBook, ports: SearchPorts) -> None:
        self.name = name
        self._book = book
        self._ports = ports
        self._adviser: Adviser | None = None
        self._known: list[Trial] = []
        """All trials as the adviser knows them, by number."""
        self._judged: dict[int, int] = {}
        """Up to which epoch or step each trial was judged."""
        self._num_lost = 0
        self._is_fresh = False
        """The adviser was made for this question: it goes on from what is written."""
        self._created_at = 0.0
        """When the search was created that the adviser knows, and that was judged."""

    def ask_next(self) -> bool:
        """Ask what is to be asked now, and write the answer; tell whether there was anything.

        Raises:
            Unavailable: the store does not answer.
        """
        question = self._question()
        if question is None:
            return False
        try:
            self._ask(question)
            self._num_lost = 0
        except AdviserFailure as error:
            self.drop()
            if not self._drop_given(question, error):
                self._fail(question, f"what chooses its values failed: {error}")
        except AdviserLost as error:
            self.drop()
            self._num_lost += 1
            if self._num_lost >= _MAX_LOST:
                self._fail(question, f"what chooses its values was lost {self._num_lost} times in a row: {error}")
        except BaseException:
            self.drop()  # it knows of an answer that was not written
            raise
        return True

    def drop(self) -> None:
        """End the adviser; another one continues from what is written."""
        if self._adviser is not None:
            self._adviser.close()
            self._adviser = None

    def _question(self) -> _Question | None:
        with self._book.lock:
            found = self._book.find(self.name)
            if found is None or found.search.state is not SearchState.RUNNING:
                return None
            created_at = found.search.created_at
            if created_at != self._created_at:
                self.drop()
                self._judged, self._created_at = {}, created_at
            if found.search.settings.pruner is not None:
                for trial in found.trials:
                    if trial.state is TrialState.RUNNING and self._is_unjudged(trial):
                        return _Question(number=trial.number, bracket=None, created_at=created_at)
            bracket = bracket_to_ask(found.search, found.trials, num_places=num_places(found, self._ports))
            if bracket is None:
                return None
            return _Question(number=found.search.num_trials, bracket=bracket, created_at=created_at)

    def _is_unjudged(self, trial: Trial) -> bool:
        return bool(trial.reports) and trial.reports[-1][0] > self._judged.get(trial.number, -1)

    def _ask(self, question: _Question) -> None:
        with self._book.lock:
            if (found := self._still(question)) is None:
                return
            seen = self._seen(found, question)
            state = self._book.sampler_state(self.name) if self._adviser is None else ""
            given = found.search.enqueued[0] if found.search.enqueued and question.bracket is not None else None
            newest = found.trials[question.number].reports[-1][0] if question.bracket is None else 0
        search = found.search
        opening = AdviserInput(
            name=self.name, settings=search.settings, trials=tuple(seen), state=state, algorithm=search.algorithm
        )
        adviser, changed = self._ready(opening)
        if question.bracket is None:
            judgement = adviser.judge(question.number, changed)
            self._judged[question.number] = newest
            self._note_judgement(question, judgement)
        else:
            answer = adviser.ask(question.number, changed, given)
            self._note_answer(question, answer, is_given=given is not None)

    def _still(self, question: _Question) -> OpenSearch | None:
        """Return the search that a question is about, if it still runs: not another one that has its name since."""
        found = self._book.find(self.name)
        if found is None or found.search.created_at != question.created_at:
            return None
        return found if found.search.state is SearchState.RUNNING else None

    def _seen(self, found: OpenSearch, question: _Question) -> Sequence[Trial]:
        """Return all trials as they count for a question."""
        search, bracket = found.search, question.bracket
        if bracket is None or not begins_together(search.settings):
            return found.trials
        return [as_seen(search, trial, bracket) for trial in found.trials]

    def _ready(self, opening: AdviserInput) -> tuple[Adviser, Sequence[Trial]]:
        """Return the adviser, made if there is none, and which trials have changed since it was told last."""
        known, self._known = self._known, [*opening.trials]
        self._is_fresh = self._adviser is None
        if self._adviser is None:
            self._adviser = self._ports.open_adviser(opening)
            return self._adviser, ()
        return self._adviser, [
            one
            for one in opening.trials
            if one.number >= len(known) or (known[one.number] is not one and known[one.number] != one)
        ]  # most are the same

    def _note_answer(self, question: _Question, answer: Asked | Exhausted, *, is_given: bool) -> None:
        with self._book.lock:
            found = self._still(question)
            if found is None or found.search.num_trials != question.number:
                self.drop()  # nobody needs the answer any more, and what asked for it has gone on from there
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

    def _note_judgement(self, question: _Question, judgement: Judgement) -> None:
        if not judgement.prune:
            return
        with self._book.lock:
            found = self._still(question)
            if found is None or found.trials[question.number].state is not TrialState.RUNNING:
                return
            step = self._book.begin(found, self._ports.now())
            trial = found.trials[question.number]
            results = (trial.reports[-1][1],) if trial.reports else None
            pruned = replace(trial, state=TrialState.PRUNED, reason=judgement.reason, results=results)
            step.decide("prune", judgement.reason, pruned)
            self._book.commit(step)

    def _drop_given(self, question: _Question, error: AdviserFailure) -> bool:
        """Forget values that somebody wants tried and that cannot be; tell whether the search goes on, or is over."""
        with self._book.lock:
            found = self._still(question)
            if found is None:
                return True
            if question.bracket is None or not found.search.enqueued:
                return False
            step = self._book.begin(found, self._ports.now())
            values = " ".join(f"{name}={value}" for name, value in found.search.enqueued[0].items())
            settings = found.search.settings
            if settings.max_trials is not None:
                settings = replace(settings, max_trials=max(1, settings.max_trials - 1))
            step.search = replace(step.search, settings=settings, enqueued=found.search.enqueued[1:])
            step.decide("ask", f"{values} was asked for, and cannot be tried: {error}")
            self._book.commit(step)
        return True

    def _fail(self, question: _Question, reason: str) -> None:
        with self._book.lock:
            if (found := self._still(question)) is not None:
                step = self._book.begin(found, self._ports.now())
                end(step, SearchState.FAILED, reason)
                step.search = replace(step.search, unrecovered=self._is_fresh and step.search.num_chosen > 0)
                self._book.commit(step)


def num_places(found: OpenSearch, ports: SearchPorts) -> int:
    """Return how many trials of a search may train at once."""
    return find_places(found.search, ports.jobs).num


def _add_trial(step: SearchStep, answer: Asked, question: _Question, ports: SearchPorts, *, is_given: bool) -> None:
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
    values = " ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}" for name, value in trial.values.items()
    )
    step.decide("ask", f"{values} {how}", trial)
