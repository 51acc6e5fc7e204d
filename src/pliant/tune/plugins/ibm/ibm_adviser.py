"""An adviser over a plug-in of IBM's form (`IbmAdviser`).

The plug-in is asked for one set of values at a time, and told once of every trial that has ended: at the next call, by
number. So what it answers depends on what was told it before each call, and on numbers that it draws. Those of the
shared generators begin with the search's seed.

An adviser that was made anew goes on from the newest state. A plug-in is thrown away, and made anew, after a call that
has no answer: nobody writes down what such a call did to it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pliant.core.search import SearchSettings, Trial
from pliant.core.space import Values, text_of_value
from pliant.core.space_rules import problems_of_values
from pliant.tune.advice import AdviserFailure, AdviserInput, Asked, Exhausted, Judgement
from pliant.tune.plugins.answers import NoScalar, items_of
from pliant.tune.plugins.code import keeps_state
from pliant.tune.plugins.encoding import NotEncodable, decode, encode
from pliant.tune.plugins.failures import failures_of
from pliant.tune.plugins.generators import dump_shared, load_shared, seed_shared
from pliant.tune.plugins.ibm.optimizer_class import load_optimizer
from pliant.tune.plugins.ibm.parameters import WrongValues, described, values_of
from pliant.tune.plugins.ibm.results import TrialOutcome, outcomes_of
from pliant.tune.plugins.ibm.results import described as described_outcome
from pliant.tune.plugins.ibm.state import PluginCall, PluginState, digest_of, dump_plugin, load_plugin

MAX_ANSWERS: Final = 1000
"""Sets of values in one answer."""


class IbmAdviser:
    """Chooses values. For one caller at a time; it is an `Adviser`."""

    def __init__(self, opening: AdviserInput, folder: Path) -> None:
        """Take a search; its plug-in is made when it is asked.

        Args:
            opening: the search, whose sampler has the algorithm's name.
            folder: with the algorithm's code.

        Raises:
            AdviserFailure: a plug-in cannot advise such a search.
        """
        self._settings = opening.settings
        self._who = f"the algorithm {opening.settings.sampler.name}"
        self._folder = folder
        self._trials = {trial.number: trial for trial in opening.trials}
        self._text = opening.state
        self._plugin: _Plugin | None = None
        _check(self._who, self._settings)

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        self._learn(changed)
        if number in self._trials:
            raise AdviserFailure(f"values are asked for as trial {number}, and it has some")
        if given:
            return Asked(values=self._complete(given), state=self._text)
        plugin, self._plugin = self._plugin, None  # it stays only if it answers
        if plugin is None:
            plugin = _Plugin(self._who, self._settings, self._folder)
            plugin.restore(load_plugin(self._who, self._text), self._trials)
        values = plugin.choose(self._trials)
        if values is None:
            return Exhausted(reason=f"{self._who} has no more to try: its search returned an empty list")
        self._text = plugin.dump()
        self._plugin = plugin
        return Asked(values=values, state=self._text)

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        self._learn(changed)
        raise AdviserFailure(f"{self._who} judges no trials, so not {number}; leave the pruner out, or give halving")

    def importances(self) -> Mapping[str, float]:
        raise AdviserFailure(f"{self._who} does not tell how important parameters are; a sampler of Pliant's does")

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _learn(self, changed: Sequence[Trial]) -> None:
        self._trials |= {trial.number: trial for trial in changed}

    def _complete(self, given: Values) -> Values:
        """Return what somebody wants tried, with what is fixed, in the order of the space."""
        space = self._settings.parameters
        wrong = [f"{one.field} {one.message}" for one in problems_of_values(space, given)]
        missing = [name for name, one in space.items() if one.kind != "fixed" and name not in given]
        if missing:
            wrong.append(f"{self._who} chooses all values or none; give {', '.join(missing)} as well")
        if wrong:
            raise AdviserFailure("; ".join(wrong))
        return {name: given.get(name, one.value) for name, one in space.items()}


class _Plugin:
    """An object of a plug-in's class, with what it was told."""

    def __init__(self, who: str, settings: SearchSettings, folder: Path) -> None:
        self._who = who
        self._settings = settings
        self._folder = folder
        self._state = PluginState()
        seed_shared(settings.sampler.seed)
        kind, base = load_optimizer(who, folder)
        self._keeps_state = keeps_state(kind, base)
        options = {name: text_of_value(value) for name, value in settings.sampler.options.items()}
        with failures_of(who, "__init__", folder):
            self._object: Any = kind(settings.sampler.name, described(settings.parameters), **options)

    def restore(self, state: PluginState, trials: Mapping[int, Trial]) -> None:
        """Be as a plug-in was that had this state."""
        if state.kept is not None and self._keeps_state:
            with failures_of(self._who, "set_state", self._folder):
                self._object.set_state(decode(state.kept["own"]))
                load_shared(state.kept["shared"])
        elif state.kept is not None:
            raise AdviserFailure(f"{self._who} has no get_state any more; begin a new search")
        else:
            self._repeat(state.calls, trials)
        self._state = state

    def choose(self, trials: Mapping[int, Trial]) -> Values | None:
        """Return the next values; None if there are no more."""
        state = self._state
        if not state.waiting:
            outcomes = outcomes_of([trials[number] for number in sorted(trials)], state.learned)
            answers = self._search(outcomes, trials)
            if not answers:
                return None
            state.waiting = [*answers]
            state.learned |= {one.number for one in outcomes}
            state.has_begun = True
            if not self._keeps_state:
                state.calls.append(PluginCall(outcomes, digest_of(answers)))
        return state.waiting.pop(0)

    def dump(self) -> str:
        """Return what another one continues from."""
        if self._keeps_state:
            with failures_of(self._who, "get_state", self._folder):
                own = self._object.get_state()
            try:
                self._state.kept = {"own": encode(own), "shared": dump_shared()}
            except (NotEncodable, ValueError, TypeError) as error:
                raise AdviserFailure(f"what get_state of {self._who} returned cannot be kept: {error}") from error
        return dump_plugin(self._who, self._state)

    def _search(self, outcomes: Sequence[TrialOutcome], trials: Mapping[int, Trial]) -> list[Values]:
        """Call the plug-in; return what it answers."""
        results = [described_outcome(one, trials[one.number].values, self._settings) for one in outcomes]
        is_first = not self._state.has_begun and not results
        with failures_of(self._who, "search", self._folder):
            answered = self._object.search(1, None if is_first else results)
            return self._read(answered)

    def _read(self, answered: object) -> list[Values]:
        try:
            items = items_of(answered, MAX_ANSWERS)
        except NoScalar as error:
            raise AdviserFailure(f"{self._who} answers with nonsense: {error}; [] is for no more to try") from error
        try:
            return [values_of(self._settings.parameters, item) for item in items]
        except WrongValues as error:
            raise AdviserFailure(f"{self._who} answers with values that cannot be: {error}") from error

    def _repeat(self, calls: Sequence[PluginCall], trials: Mapping[int, Trial]) -> None:
        """Make all calls again.

        Raises:
            AdviserFailure: it answers otherwise.
        """
        for place, call in enumerate(calls):
            try:
                same = digest_of(self._search(call.outcomes, trials)) == call.digest
                why = "it answers otherwise"
            except (AdviserFailure, KeyError) as error:
                same, why = False, str(error)
            if not same:
                raise AdviserFailure(
                    f"{self._who} cannot go on after a restart: asked again for its answer {place + 1} of "
                    f"{len(calls)}, {why}; write get_state and set_state, or take numbers from numpy.random or random"
                )
            self._state.has_begun = True


def _check(who: str, settings: SearchSettings) -> None:
    """Refuse a search that a plug-in cannot advise; with all that is wrong."""
    wrong = []
    if any(one.when for one in settings.parameters.values()):
        wrong.append("knows no conditions; leave `when` out")
    if len(settings.objectives) > 1:
        wrong.append(f"takes one objective, and there are {len(settings.objectives)}; give one")
    if settings.pruner is not None:
        wrong.append("judges no trials; leave the pruner out, or give halving")
    if all(one.kind == "fixed" for one in settings.parameters.values()):
        wrong.append("has nothing to choose: all parameters are fixed")
    if wrong:
        raise AdviserFailure(f"{who} " + "; it ".join(wrong))
