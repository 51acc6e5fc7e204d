"""A plug-in of IBM's form advises a search, goes on exactly, and what is wrong with it is said in one sentence."""

import contextlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tune.adviser.played import MIXED, NUMBERS, Kind, Played, play
from tests.tune.plugins.ibm.samples import GRID, HEAD, KEPT, SHARED, UNREPEATABLE, answering

from pliant.core.search import Halving, Objective, Pruner, TrialState
from pliant.core.space import SearchParameter, Value
from pliant.tune.advice import AdviserFailure, AdviserInput, Asked, Exhausted
from pliant.tune.plugins.ibm.ibm_adviser import IbmAdviser

FolderOf = Callable[..., Path]
LR: Mapping[str, SearchParameter] = {"lr": SearchParameter(kind="float", low=0.0, high=1.0)}


def opener(folder: Path) -> Callable[[AdviserInput], IbmAdviser]:
    return lambda opening: IbmAdviser(opening, folder)


def played(space: Mapping[str, SearchParameter] = LR, **options: Any) -> Played:
    return Played(settings=Kind(name="random", space=space, options=options).settings)


def asked(folder: Path, space: Mapping[str, SearchParameter] = LR) -> Asked:
    search = played(space)
    answer = search.ask(IbmAdviser(search.opening, folder), [])
    assert isinstance(answer, Asked)
    return answer


def failure(folder: Path, space: Mapping[str, SearchParameter] = LR) -> str:
    with pytest.raises(AdviserFailure) as raised:
        asked(folder, space)
    return str(raised.value)


@pytest.mark.parametrize("code", [SHARED, KEPT, GRID], ids=["shared", "kept", "grid"])
@pytest.mark.parametrize("space", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_one_that_is_made_anew_before_every_call_answers_the_same(
    folder_of: FolderOf, code: str, space: Mapping[str, SearchParameter]
) -> None:
    kind = Kind(name="random", space=space, num_trials=24)
    folder = folder_of(code)

    values = play(kind, opener(folder))

    assert len({json.dumps(one) for one in values}) > 12
    assert play(kind, opener(folder), renewed=lambda number: number > 0) == values
    assert play(kind, opener(folder), renewed=lambda number: number in (7, 8, 16)) == values


def test_another_seed_is_another_search(folder_of: FolderOf) -> None:
    folder = folder_of(SHARED)
    first = played(NUMBERS)
    other = Played(settings=replace(first.settings, sampler=replace(first.settings.sampler, seed=4)))

    assert first.ask(IbmAdviser(first.opening, folder), []) != other.ask(IbmAdviser(other.opening, folder), [])


def test_what_takes_numbers_from_elsewhere_cannot_go_on(folder_of: FolderOf) -> None:
    folder, search = folder_of(UNREPEATABLE), played()
    adviser = IbmAdviser(search.opening, folder)
    for _ in range(8):
        search.ask(adviser, [])

    with pytest.raises(AdviserFailure, match=r"the algorithm random cannot go on after a restart: asked again for"):
        search.ask(IbmAdviser(search.opening, folder), [])


def test_it_is_told_once_of_every_trial_that_has_ended(folder_of: FolderOf) -> None:
    code = answering(
        "log(last_exp_results)", "import json\ndef log(r):\n    print(json.dumps(r))\n    return [{'lr': 0.5}]"
    )
    search = played({"lr": SearchParameter(kind="float", low=0.01, high=1.0, log=True), "seed": NUMBERS["seed"]})
    folder = folder_of(code.replace("0.5", "-1"))
    adviser = IbmAdviser(search.opening, folder)
    search.ask(adviser, [])
    search.ask(adviser, [])
    search.trials[0] = replace(search.trials[0], state=TrialState.PRUNED, results=(0.25,))
    search.trials[1] = replace(search.trials[1], state=TrialState.COMPLETED, results=(float("nan"),))
    told = adviser_told(search, adviser)

    values = {"hyperParams": [{"name": "lr", "dataType": "DOUBLE", "fixedVal": "-1.0"}], "values": {"lr": -1.0}}
    assert told == [
        {"id": 0, "state": "STOPPED", "metricVal": 0.25, "objective": "minimize", **values},
        {"id": 1, "state": "FAILED", "metricVal": None, "objective": "minimize", **values},
    ]
    assert adviser_told(search, adviser) == []
    assert adviser_told(search, IbmAdviser(search.opening, folder)) == []


def adviser_told(search: Played, adviser: IbmAdviser) -> Any:
    """Return what the plug-in is told at the next call."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        search.ask(adviser, [*search.trials.values()])
    return json.loads(printed.getvalue().splitlines()[-1])


def test_at_the_first_call_there_is_nothing_to_tell_and_options_are_texts(folder_of: FolderOf) -> None:
    code = answering("[{'lr': 0.25}] if last_exp_results is None and self.kwargs == WANTED else [{}]")
    folder = folder_of(code.replace("\n\n", "\nWANTED = {'a': '1', 'b': '0.5', 'c': 'x', 'd': 'true'}\n", 1))
    search = played(a=1, b=0.5, c="x", d=True)

    assert search.ask(IbmAdviser(search.opening, folder), []) == Asked(values={"lr": 0.25}, state=search.state)


def test_what_it_answers_too_much_is_kept_for_the_next_trials(folder_of: FolderOf) -> None:
    folder = folder_of(f"{answering('[{chr(108) + chr(114): i / 4} for i in range(3)]')}")
    search = played()
    adviser = IbmAdviser(search.opening, folder)
    first = [search.ask(adviser, [])]
    then = [search.ask(IbmAdviser(search.opening, folder), []) for _ in range(4)]

    assert [one.values for one in first + then if isinstance(one, Asked)] == [
        {"lr": value} for value in (0.0, 0.25, 0.5, 0.0, 0.25)
    ]


def test_an_empty_list_is_the_end_and_changes_nothing(folder_of: FolderOf) -> None:
    folder, search = folder_of(GRID), played()
    adviser = IbmAdviser(search.opening, folder)
    for _ in range(3):
        assert isinstance(search.ask(adviser, []), Asked)

    for one in (adviser, adviser, IbmAdviser(search.opening, folder)):
        assert search.ask(one, []) == Exhausted(
            reason="the algorithm random has no more to try: its search returned an empty list"
        )
    assert isinstance(search.ask(adviser, [], {"lr": 0.3}), Asked)


def test_values_that_somebody_wants_tried_are_taken_whole_or_not(folder_of: FolderOf) -> None:
    folder = folder_of(GRID)
    search = played(NUMBERS)
    adviser = IbmAdviser(search.opening, folder)

    taken = search.ask(adviser, [], {"decay": 0.5, "lr": 0.001, "width": 16})
    assert isinstance(taken, Asked)
    assert [*taken.values.items()] == [("lr", 0.001), ("width", 16), ("decay", 0.5), ("seed", 7)]
    with pytest.raises(
        AdviserFailure, match=r"^the algorithm random chooses all values or none; give width, decay as well$"
    ):
        search.ask(adviser, [], {"lr": 0.001})
    with pytest.raises(AdviserFailure, match=r"lr 5 is not from 1e-05 to 0\.1"):
        search.ask(adviser, [], {"lr": 5, "width": 16, "decay": 0.5})


CHOICES: Mapping[str, SearchParameter] = {
    "act": SearchParameter(kind="choice", choices=("relu", True, 1, None, (64, (32, 16)))),
    "num": SearchParameter(kind="choice", choices=(1, 2.5)),
    "layers": SearchParameter(kind="int", low=1, high=8, log=True),
}


def test_all_that_a_space_has_is_described_with_ibms_fields(folder_of: FolderOf) -> None:
    code = answering("[{}]", "").replace(
        "    def search",
        "    def __init__(self, name, parameters):\n        raise ValueError(parameters)\n\n    def search",
    )
    message = failure(folder_of(code), {**NUMBERS, **CHOICES})

    assert "{'name': 'width', 'type': 'Range', 'dataType': 'INT', 'minIntVal': 8, 'maxIntVal': 64, 'step': 8" in message
    assert "'dataType': 'DOUBLE', 'minDbVal': -5.0, 'maxDbVal': -1.0, 'power': 10, 'userDefined': False}" in message
    assert "seed" not in message


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ("{'act': '[64,[32,16]]', 'num': 1.0, 'layers': np.int64(3)}", ((64, (32, 16)), 1, 3)),
        ("{'act': 'true', 'num': np.float32(2.5), 'layers': 4.0}", (True, 2.5, 4)),
        ("{'act': 1, 'num': np.int8(1), 'layers': np.array(8)}", (1, 1, 8)),
        ("{'act': np.str_('null'), 'num': 2.5, 'layers': np.float64(1)}", (None, 2.5, 1)),
    ],
)
def test_answers_are_values_of_the_space(folder_of: FolderOf, answer: str, values: tuple[Value, ...]) -> None:
    found = asked(folder_of(answering(f"[{answer}]")), CHOICES).values

    assert repr(tuple(found.values())) == repr(values)


EVIL = """
class Evil:
    def __str__(self): raise SystemExit(3)
    __repr__ = __float__ = __int__ = __index__ = __eq__ = __hash__ = __str__
class Float(float):
    def __float__(self): return 5.0
    __str__ = __repr__ = __add__ = __mul__ = lambda self, *_: 1 / 0
class Number(np.float64):
    def item(self): return 5.0
class Text(str):
    def __str__(self): return "lr"
    def __eq__(self, other): return True
    __hash__ = str.__hash__
class Dict(dict):
    def items(self): return [("lr", 0.1)]
class List(list):
    def __len__(self): return 0
    def __iter__(self): return iter([{"lr": 0.1}])
class Raised(Exception):
    def __str__(self): raise MemoryError("no")
def raised(error): raise error
cyclic = []
cyclic.append(cyclic)
"""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("[{'lr': 2}]", "answers with values that cannot be: 'lr' cannot be so: 2.0 is not from 0 to 1"),
        ("[{'lr': float('nan')}]", "'lr' cannot be so: nan is no number"),
        ("[{'lr': '0.1'}]", "'lr' cannot be so: \"0.1\" is no number"),
        ("[{'lr': True}]", "'lr' cannot be so: true is no number"),
        ("[{'lr': 10 ** 400}]", "'lr' cannot be so: a number of 1329 bits is too large"),
        ("[{'lr': [0.1]}]", "'lr' cannot be so: it is a list, and no number or text"),
        ("[{'lr': np.array([0.1])}]", "'lr' cannot be so: it is a ndarray"),
        ("[{'lr': Evil()}]", "'lr' cannot be so: it is a Evil"),
        ("[{'lr': Float(7)}]", "'lr' cannot be so: 7.0 is not from 0 to 1"),
        ("[{'lr': Number(7)}]", "'lr' cannot be so: 7.0 is not from 0 to 1"),
        ("[{Text('rate'): 0.1}]", "there is no parameter 'rate'; there is no value for 'lr'"),
        ("[{'lrr': 0.1}]", "there is no parameter 'lrr'; is 'lr' meant?; there is no value for 'lr'"),
        ("[Dict(rate=1)]", "there is no parameter 'rate'"),
        ("[{3: 0.1}]", "a name is a int; give the names of parameters"),
        ("[{}]", "there is no value for 'lr'"),
        ("[0.1]", "a float is there instead of a dict of values by name"),
        ("{'lr': 0.1}", "answers with nonsense: a dict is there instead of a list; [] is for no more to try"),
        ("None", "answers with nonsense: a NoneType is there instead of a list"),
        ("cyclic", "a list is there instead of a dict"),
        ("List([{'lr': 9}])", "9.0 is not from 0 to 1"),
        ("[{'lr': 0.1}] * 1_000_000", "a list of 1,000,000 is there; 1,000 are the most"),
        ("Evil", "a type is there instead of a list"),
        ("1 / 0", r"the algorithm random raised ZeroDivisionError: division by zero in search (optimizer.py:"),
        ("raised(SystemExit(3))", "raised SystemExit: 3 in search (optimizer.py:"),
        ("raised(KeyboardInterrupt)", "raised KeyboardInterrupt in search"),
        ("raised(Raised())", "raised an error that cannot be shown in search"),
        ("raised(ValueError('a\\nb\\x1b[0m' + 'x' * 9999))", "raised ValueError: a b\ufffd[0mxxx"),
    ],
)
def test_an_answer_that_is_none_is_a_failure_that_says_so(folder_of: FolderOf, answer: str, message: str) -> None:
    found = failure(folder_of(answering(answer, EVIL)))

    assert found.startswith("the algorithm random ")
    assert message in found
    assert len(found) < 800


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = (", "raised SyntaxError: '(' was never closed"),
        (
            "import not_there",
            "No module named 'not_there' in optimizer.py (optimizer.py:1); install it with an environment that",
        ),
        ("raise SystemExit", "raised SystemExit in optimizer.py (optimizer.py:1)"),
        (
            "PluginOptimizer = 3",
            "optimizer.py of the algorithm random has no class PluginOptimizer(BasePluginOptimizer)",
        ),
        (f"{HEAD}\nclass PluginOptimizer(BasePluginOptimizer): pass", "has no search; write search(self, number_sa"),
        (answering("[]").replace("last_exp_results=None", "last"), "has no more to try"),
        (f"{answering('[]')}\n    def get_state(self): pass", "has get_state and no set_state; write both, or none"),
        (
            f"{KEPT}\n    def get_state(self): return {{'a': [(self,)]}}",
            "a[0][0] is a PluginOptimizer, which cannot be",
        ),
        (f"{KEPT}\n    def get_state(self): raise OSError('x')", "raised OSError: x in get_state (optimizer.py:"),
        (f"{KEPT}\n    def get_state(self): return 'x' * 5_000_000", "get_state of it returns 5,00"),
    ],
)
def test_code_that_is_no_plug_in_is_a_failure_that_says_so(folder_of: FolderOf, code: str, message: str) -> None:
    if "no more" in message:
        search = played()
        assert message in str(search.ask(IbmAdviser(search.opening, folder_of(code)), []))
    else:
        assert message in failure(folder_of(code))


def test_a_folder_without_the_file_says_which_is_missing(folder_of: FolderOf) -> None:
    assert "has no optimizer.py at the top of its folder; put it there" in failure(folder_of("", "sampler.py"))


def test_a_state_that_it_does_not_take_is_a_failure(folder_of: FolderOf) -> None:
    search = played()
    search.ask(IbmAdviser(search.opening, folder_of(KEPT)), [])
    with pytest.raises(AdviserFailure, match=r"raised KeyError: 'other' in set_state \(optimizer.py:"):
        search.ask(IbmAdviser(search.opening, folder_of(KEPT.replace('state["rng"]', 'state["other"]'))), [])
    search.state = "{"
    with pytest.raises(AdviserFailure, match="the state of the algorithm random cannot be read: JSONDecodeError"):
        search.ask(IbmAdviser(search.opening, folder_of(KEPT)), [])


def test_a_search_that_it_cannot_advise_is_refused_with_all_that_is_wrong(folder_of: FolderOf) -> None:
    settings = replace(
        played().settings,
        parameters={**LR, "m": SearchParameter(kind="float", low=0, high=1, when={"lr": (1,)})},
        objectives=(Objective(metric="a", direction="minimize"),) * 2,
        pruner=Pruner(name="median"),
    )
    with pytest.raises(AdviserFailure) as raised:
        IbmAdviser(AdviserInput(name="s", settings=settings), folder_of(GRID))

    for part in ("knows no conditions", "takes one objective, and there are 2", "judges no trials"):
        assert part in str(raised.value)
    halved = replace(played().settings, halving=Halving(max=9))
    IbmAdviser(AdviserInput(name="s", settings=halved), folder_of(GRID))
