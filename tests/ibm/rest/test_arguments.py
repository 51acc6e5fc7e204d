"""The grammar of `args`: every option, and what goes to the program."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ibm.rest.conftest import outcome

from pliant.core.errors import InvalidInput
from pliant.ibm.rest.translate.arguments import HIDDEN, MAX_CHARACTERS, Arguments, pairs, parse, split_words, variables
from pliant.ibm.rest.translate.flags import FLAGS, Flag, Support, Takes


def value_of(flag: Flag) -> str:
    """Return a value that fits an option."""
    if flag.choices:
        return flag.choices[-1]
    return {Takes.NOTHING: "", Takes.TEXT: "some text", Takes.WHOLE: "3", Takes.AMOUNT: "0.5"}[flag.takes]


@pytest.mark.parametrize("flag", FLAGS.values(), ids=lambda flag: flag.name)
def test_every_option_is_taken_in_both_forms(flag: Flag) -> None:
    value = value_of(flag)
    if flag.takes is Takes.NOTHING:
        texts = [f"--mine 1 {flag.name} --other"]
    else:
        texts = [f"--mine 1 {flag.name} '{value}' --other", f"--mine 1 '{flag.name}={value}' --other"]
    for text in texts:
        found = parse(text)
        assert found.options == {flag.name: (value,)}
        assert found.program == ("--mine", "1", "--other")
        assert (HIDDEN in found.shown) == flag.secret
        assert not flag.secret or value not in found.shown
        assert bool(found.without_effect) == (flag.support is Support.NO)


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS.values() if flag.takes is not Takes.NOTHING], ids=lambda f: f.name
)
def test_an_option_without_its_value_is_refused(flag: Flag) -> None:
    for text in (flag.name, f"{flag.name} --exec-start PyTorch", f"{flag.name}=", f"{flag.name} -- x"):
        with pytest.raises(InvalidInput) as error:
            parse(text)
        assert [problem.field for problem in error.value.problems] == [flag.name]
        assert "its value is missing" in str(error.value)


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("--numWorker two", "--numWorker", "not a whole number"),
        ("--numWorker 1.5", "--numWorker", "not a whole number"),
        ("--numWorker 99999999999999999999", "--numWorker", "not a whole number"),
        ("--workerDeviceNum -1", "--workerDeviceNum", "not a number"),
        ("--workerDeviceType tpu", "--workerDeviceType", "none of cpu, gpu"),
        ("--msd-image-pull-policy always", "--msd-image-pull-policy", "none of Always"),
        ("--debug-level loud", "--debug-level", "none of debug"),
        ("--user-cmd=yes", "--user-cmd", "takes no value"),
    ],
)
def test_a_wrong_value_is_refused(text: str, field: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        parse(text)
    assert error.value.problems[0].field == field


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as error:
        parse("--numWorker x --msd-priority y --debug-level z")
    assert [p.field for p in error.value.problems] == ["--numWorker", "--msd-priority", "--debug-level"]


def test_what_is_unknown_goes_to_the_program_in_order() -> None:
    found = parse("--exec-start PyTorch --model-main m.py --batch-size 200 pos -v --lr=0.1 --numWorker 2 last")
    assert found.program == ("--batch-size", "200", "pos", "-v", "--lr=0.1", "last")
    assert found.command == ()
    assert (found.get("--exec-start"), found.whole("--numWorker"), found.get("--ig")) == ("PyTorch", 2, None)


def test_behind_two_dashes_nothing_is_an_option() -> None:
    found = parse("--exec-start distPyTorch --extra --user-cmd -- bash run.sh --numWorker 9 -- again")
    assert found.command == ("bash", "run.sh", "--numWorker", "9", "--", "again")
    assert found.program == ("--extra", *found.command)
    assert found.whole("--numWorker") is None


def test_the_last_of_several_counts_and_some_are_all_kept() -> None:
    found = parse("--numWorker 1 --numWorker 2 --msd-env A=1 --msd-env B=2")
    assert found.whole("--numWorker") == 2
    assert found.options["--msd-env"] == ("A=1", "B=2")


def test_secrets_are_in_nothing_that_is_shown() -> None:
    found = parse("--exec-start PyTorch --jwt-token 'to ken' --model-main m.py -- --name 'a b'")
    assert found.shown == "--exec-start PyTorch --jwt-token '***' --model-main m.py -- --name 'a b'"
    assert parse("--exec-start PyTorch  --x").shown == "--exec-start PyTorch  --x"
    found = parse("--msd-env WANDB_API_KEY=abc --msd-env DB=ftp://ann:abc@host --msd-env N=1")
    assert found.shown == "--msd-env 'WANDB_API_KEY=(hidden)' --msd-env 'DB=ftp://ann:(hidden)@host' --msd-env N=1"
    assert found.options["--msd-env"][0] == "WANDB_API_KEY=abc", "the job gets it"


@given(
    st.text(max_size=100)
    | st.lists(
        st.sampled_from([*FLAGS, "--", "x", "'", '"', "\\", "=", "--numWorker=3", "A=B", "_QUOTE_", "-1", "\n"]),
        max_size=12,
    ).map(" ".join)
)
def test_nothing_but_invalid_input_is_ever_raised(text: str) -> None:
    found = outcome(parse, text)
    if isinstance(found, InvalidInput):
        assert found.problems
        return
    assert isinstance(found, Arguments)
    assert set(found.options) <= set(FLAGS)
    assert found.program[len(found.program) - len(found.command) :] == found.command


def test_pairs_and_variables() -> None:
    assert pairs("type=fs, data_path=a/b ,", field="f") == {"type": "fs", "data_path": "a/b"}
    assert variables(("A=1", "B=x=y", "C="), field="f") == {"A": "1", "B": "x=y", "C": ""}
    with pytest.raises(InvalidInput, match="'x' is not NAME=VALUE"):
        pairs("a=1,x", field="f")
    with pytest.raises(InvalidInput) as error:
        variables(("A", "1B=2", "OK=1"), field="--msd-env")
    assert len(error.value.problems) == 2


# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("  \t\n ", ()),
        ("a b", ("a", "b")),
        ("'a b' c", ("a b", "c")),
        ('"a b"c', ("a bc",)),
        ("''", ("",)),
        ("a'' b", ("a", "b")),
        (r"a\ b", ("a b",)),
        (r"'a\b'", (r"a\b",)),
        (r'"a\"b\\c\$d\`e\f"', (r'a"b\c$d`e\f',)),
        ("a \\\n b", ("a", "b")),
        ("a\\\nb", ("ab",)),
        ("a\\\r\nb", ("ab",)),
        ('"a\\\nb"', ("ab",)),
        ("$HOME `date` $(date) ~ *.py a;b|c>d&e #f", ("$HOME", "`date`", "$(date)", "~", "*.py", "a;b|c>d&e", "#f")),
        ("--x _QUOTE_a b_QUOTE_", ("--x", "a b")),
        ("ä ö", ("ä", "ö")),
        ("a\u00a0b", ("a\u00a0b",)),
    ],
)
def test_text_is_split_as_a_shell_would(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 'b", "the quote at character 3 is not closed"),
        ('"', "the quote at character 1"),
        ('"a\\"', "the quote at character 1"),
        ("a\\", "ends with a backslash"),
        ("a _QUOTE_b", "not closed"),
        ("a\0b", "NUL"),
        ("a" * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS} are the most"),
    ],
)
def test_what_cannot_be_split_is_told(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        split_words(text)


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)))
def test_what_a_shell_would_quote_comes_back(words: list[str]) -> None:
    if not any("_QUOTE_" in word for word in words):
        assert split_words(shlex.join(words)) == tuple(words)


@given(st.text(max_size=200) | st.text(alphabet="ab '\"\\\n_QUOTE-=", max_size=60))
def test_splitting_raises_nothing_else(text: str) -> None:
    found = outcome(split_words, text)
    if isinstance(found, InvalidInput):
        assert [problem.field for problem in found.problems] == ["args"]
    else:
        assert all(isinstance(word, str) for word in found)
