"""Job files: what is read of them and written, and that they say what the options of `submit` say."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Run
from tests.server.played import Played

from pliant.cli.commands import COMMANDS, Listed
from pliant.cli.jobs.asked import OPTIONS
from pliant.cli.jobs.document import ValueType
from pliant.cli.jobs.job_file import KEYS, read_job_file, write_job_file
from pliant.cli.jobs.job_schema import rows, schema
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSpec
from pliant.core.secret_names import names_secret

PAGE = Path(__file__).parents[2] / "docs" / "job-files.md"
NOT_OF_JOBS = {"save", "_schema", "dry_run", "follow", "wait", "as_json"}
"""Parameters of `submit` that say what the command does, not what the job is."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# One description


def test_keys_are_the_options_of_submit() -> None:
    parameters = {one.name: one for one in Listed("submit", COMMANDS["submit"]).load().params}

    assert {key.field for key in KEYS.values()} == parameters.keys() - NOT_OF_JOBS
    for key in KEYS.values():
        if key.field not in ("path", "args"):
            assert f"--{key.name}" == parameters[key.field].opts[0]


def test_the_page_has_every_key() -> None:
    (table,) = re.findall(r"<!-- .*job_schema -->\n\n(.*?)\n\n<!-- -->", PAGE.read_text(), re.DOTALL)
    assert table.splitlines() == [*rows()], "run: python -m pliant.cli.jobs.job_schema"


def test_the_examples_of_the_page_are_job_files(folder: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 2
    for number, text in enumerate(examples):
        path = folder / f"{number}.yaml"
        path.write_text(text)
        assert len(read_job_file(path).lines) > 3


def test_the_schema_takes_what_is_written_and_nothing_else(run: Run, folder: Path) -> None:
    printed = json.loads(run(None, "submit", "--print-schema").out)
    assert printed == schema()
    jsonschema.Draft202012Validator.check_schema(printed)
    validator = jsonschema.Draft202012Validator(printed)
    options = ["--max", "8", "--env", "A=1", "--memory", "4GB", "--mode", "fast", "--no-tracking", "--array", "lr=1,2"]
    assert run(None, "submit", "train.py", *options, "--save", "job.json", "--", "--lr", "0.1").code == 0
    assert list(validator.iter_errors(json.loads(Path("job.json").read_text()))) == []
    for wrong in ({}, {"max": 0}, {"max": "8"}, {"maxx": 8}, {"mode": "quick"}, {"env": {"A": 1}}, {"array": ["lr=1"]}):
        assert list(validator.iter_errors(wrong)) != [], wrong


# There and back

TEXTS = st.text(max_size=30)
VALUES: Mapping[ValueType, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "integer": st.integers(-(10**17), 10**17),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "texts": st.lists(TEXTS, min_size=1, max_size=4),
    "values": st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3), min_size=1, max_size=3),
}


def typed() -> st.SearchStrategy[dict[str, Any]]:
    """Return whatever can be typed for any of the options, secrets aside."""
    made = {key.field: VALUES[key.type] for key in KEYS.values() if key.field not in ("path", "webhook", "env")}
    made["path"] = TEXTS.filter(lambda text: "\0" not in text)
    names = st.from_regex(r"[A-Z_]{1,8}", fullmatch=True).filter(lambda name: not names_secret(name))
    pairs = st.tuples(names, st.text(alphabet="ab=1 \n'\"#:-é", max_size=8)).map("=".join)
    made["env"] = st.lists(names | pairs, min_size=1, max_size=3)
    return st.fixed_dictionaries({}, optional=made)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=typed())
@example(asked={"name": "\x85", "args": ["\u2028a", "\ufeff", " \n ", "\x00", "\ud800"]})
def test_what_is_written_is_read_again(folder: Path, suffix: str, asked: dict[str, Any]) -> None:
    path = folder / f"job{suffix}"
    path.unlink(missing_ok=True)
    assert write_job_file(path, asked) == ()
    if not any(was_given(name, value) for name, value in asked.items()):
        return
    again = {name: value for name, value in read_job_file(path).typed.items() if name in asked or name != "path"}

    expected = {name: from_root(name, value) for name, value in asked.items() if was_given(name, value)}
    assert again == expected


def was_given(name: str, value: object) -> bool:
    return name not in OPTIONS or value != OPTIONS[name].parameter.default


def from_root(name: str, value: Any) -> Any:
    """Return a value as a file has it: paths are seen from the root."""
    if name == "path":
        return os.path.abspath(os.path.expanduser(value))
    place = None if name not in OPTIONS else OPTIONS[name].wording.place
    return value if place is None else place(value, Path.cwd())


EVERYTHING = (
    "--name no --max 6 --min 2 --priority 9 --slots-per-task 2 --virtual-workers 12 --env A=1 --env B=x=y "
    "--mode fast --weights 1 --checkpoint-freq 0 --checkpoint-every 7.5 --memory 4GB --time-limit 1h30m "
    "--start-timeout 90s --stall-after 0 --on-stall replace --metrics-every 3 --histograms-every 50 --no-tracking "
    "--audit --after 1"
)


@pytest.mark.parametrize("name", ["job.yaml", "job.yml", "job.json"])
@pytest.mark.parametrize(
    "options",
    [EVERYTHING.split(), ["--fixed", "2", "--max-restarts", "1"], ["--after-any", "1", "--balance", "speed"], []],
)
def test_a_saved_job_is_the_same_submission(
    run: Run, taking: Played, folder: Path, name: str, options: list[str]
) -> None:
    args = ["--", "--lr", "1e-3", "on", ""]
    direct = spec_of(taking, run(taking, "submit", "train.py", *options, "--json", *args).out)

    saved = run(taking, "submit", "train.py", *options, "--save", name, *args)
    assert (saved.code, saved.out) == (0, f"{name} is written; `pliant submit {name}` submits it\n")
    assert spec_of(taking, run(taking, "submit", name, "--json").out) == direct


def test_a_saved_array_is_the_same_array(run: Run, taking: Played, folder: Path) -> None:
    options = ["--array", "lr=0.1,1e-3", "--array", "on=yes,no", "--array-max", "2"]
    direct = json.loads(run(taking, "submit", "train.py", *options, "--json").out)
    run(taking, "submit", "train.py", *options, "--save", "job.yaml")

    again = json.loads(run(taking, "submit", "job.yaml", "--json").out)
    assert [job["spec"]["args"] for job in again["jobs"]] == [job["spec"]["args"] for job in direct["jobs"]]
    assert again["max_running"] == 2


def spec_of(pool: Played, out: str) -> JobSpec:
    return pool.job(json.loads(out)["id"]).spec


def test_secrets_are_not_written(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "geheim1")
    options = ["--env", "HF_TOKEN", "--env", "MY_KEY=geheim2", "--env", "URL=http://a:geheim3@host", "--env", "A=b"]
    done = run(
        None, "submit", "train.py", *options, "--webhook", "https://hooks.example.org/geheim4", "--save", "j.yaml"
    )

    assert "geheim" not in Path("j.yaml").read_text() + done.out + done.err
    assert "the value of MY_KEY, URL is not written" in done.err
    assert "PLIANT_WEBHOOK gives it" in done.err
    assert read_job_file(Path("j.yaml")).typed["env"] == ["HF_TOKEN", "MY_KEY", "URL", "A=b"]


def test_nothing_is_written_over_and_nothing_wrong_is_written(run: Run, folder: Path) -> None:
    Path("job.yaml").write_text("mine\n")
    for options, said in (
        (["--save", "job.yaml"], "--save: 'job.yaml' is there already; give another name, or remove it"),
        (["--save", "job.txt"], "--save: 'job.txt' does not end in .yaml, .yml, .json"),
        (["--save", "none/job.yaml"], "--save: 'none/job.yaml' cannot be written (No such file or directory)"),
        (["--save", "j.yaml", "--max", "0"], "--max: 0 is too small"),
        (["--save", "j.yaml", "--wait"], "--save: nothing is submitted with it"),
    ):
        done = run(None, "submit", "train.py", *options)
        assert (done.code, said in done.err) == (2, True), done.err
    assert (Path("job.yaml").read_text(), sorted(os.listdir())) == ("mine\n", ["job.yaml", "train.py"])


# Files and options


def test_options_win_over_the_file(run: Run, taking: Played, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("job.yaml").write_text(
        "script: train.py\nmax: 6\nmin: 2\npriority: 9\nenv: [A=1, B=2, NOT_SET]\nargs: [--lr, 1]\naudit: true\n"
        "weights: job-1\n"
    )
    monkeypatch.delenv("NOT_SET", raising=False)
    options = ["--priority", "5000", "--env", "B=3", "--env", "NOT_SET=4", "--no-tracking", "--json"]
    spec = spec_of(taking, run(taking, "submit", "job.yaml", *options, "--", "--lr", "2").out)

    assert (spec.max_tasks, spec.min_tasks, spec.priority, spec.audit) == (6, 2, 5000, True)
    assert (spec.env, spec.args) == ({"A": "1", "B": "3", "NOT_SET": "4"}, ("--lr", "2"))
    taking.save("job-1", "checkpoint/step-3.ckpt", b"")
    options = ["--env", "NOT_SET=4", "--resume-from", "1", "--json"]
    resumed = spec_of(taking, run(taking, "submit", "job.yaml", *options).out)
    assert (resumed.weights, resumed.args) == (None, ("--lr", "1"))
    Path("small.yaml").write_text("script: train.py\nmax: 6\n")
    fixed = spec_of(taking, run(taking, "submit", "small.yaml", "--fixed", "2", "--json").out)
    assert (fixed.fixed, fixed.max_tasks) == (True, 2)


def test_paths_are_relative_to_the_file(
    run: Run, taking: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "code").mkdir(parents=True)
    (project / "code" / "go.py").write_text("import pliant.train\n")
    (project / "w.pt").write_bytes(b"")
    (project / "job.yaml").write_text("path: code\nweights: w.pt\ndata-dir: .\n")
    monkeypatch.chdir(tmp_path)

    done = run(taking, "submit", "project/job.yaml", "--json")
    spec = spec_of(taking, done.out)
    assert (spec.script, spec.weights, spec.data_dir) == ("go.py", str(project / "w.pt"), str(project))
    (project / "code" / "job.json").write_text('{"script": "go.py"}')
    made = json.loads(run(taking, "submit", "project/code/job.json", "--json").out)
    assert set(taking.code(made["id"])) == {"go.py", "job.json"}, "without a path it is the folder of the file"


def test_what_the_file_does_not_say_comes_from_the_environment(
    run: Run, taking: Played, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIANT_MAIL", "not an address")
    Path("job.yaml").write_text("script: train.py\n")
    assert "--mail: 'not an address' is no address" in run(taking, "submit", "job.yaml").err
    Path("job.yaml").write_text("script: train.py\nmail: nor this\n")
    assert "job.yaml, line 2: mail: 'nor this' is no address" in run(taking, "submit", "job.yaml").err


# What is wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max: 0", "line 1: max: 0 is too small; give 1 or more"),
        ("max: eight", "line 1: max: 'eight' is no whole number"),
        ("max: 1_000", "line 1: max: '1_000' is no whole number"),
        ('max: "8"', "line 1: max: '8' is a text; write it without quotation marks"),
        ("max: 8.0", "line 1: max: '8.0' is no whole number"),
        ("max:", "line 1: max: it has no value; give one"),
        ("max: [8]", "line 1: max: it is a list; give one value"),
        ("checkpoint-every: .inf", "line 1: checkpoint-every: '.inf' is no number"),
        ("audit: yes", "line 1: audit: 'yes' is neither true nor false"),
        ("mode: exakt", "line 1: mode: 'exakt' is not possible; give 'exact' or 'fast'; is 'exact' meant?"),
        ("\nmax_tasks: 8", "line 2: there is no key 'max_tasks'; is 'max' meant?"),
        ("virtual_workers: 8", "line 1: there is no key 'virtual_workers'; is 'virtual-workers' meant?"),
        ("follow: true", "line 1: there is no key 'follow'"),
        ("<<: {max: 3}", "line 1: there is no key '<<'"),
        ("max: 1\nmax: 2", "line 2: max: it stands in line 1 already; give it once"),
        ("args: --lr", "line 1: args: it is one value; give a list, such as [a, b]"),
        ("args: [[a]]", "line 1: args: it is a list; give one value"),
        ("env: {A: b}", "line 1: env: it is a mapping; give a list"),
        ("env: [NOT_SET_HERE]", "line 1: env: 'NOT_SET_HERE' has no '=' and is not set here"),
        ("env: [1=2]", "line 1: env: '1' cannot be taken"),
        ("array: [lr=1]", "line 1: array: it is a list; give lists by name, such as {lr: [0.1, 0.01]}"),
        ("array: {lr: 1}", "line 1: array: it is one value; give lists by name"),
        ("array: {lr: [1], lr: [2]}", "line 1: array: 'lr' is given twice; give all its values at once"),
        ("array:\n  lr: [1, 1]", "job.yaml: 'lr' has the value '1' twice; give every value once"),
        ("array-max: 3", "array: it is missing"),
        ("memory: 4QB", "line 1: memory: '4QB' is no size; give one like 4GB or 512MiB"),
        ("time-limit: soon", "line 1: time-limit: 'soon' is no length of time"),
        ("min: 4\nmax: 2", "job.yaml: min 4 is above max 2; lower the one or raise the other"),
        ("path: nowhere", "line 1: path: "),
        ("script: none.ipynb", "line 1: script: 'none.ipynb' is a notebook"),
        ("name: !!python/object/apply:os.system [ls]", "line 1: name: it is a list; give one value"),
        ("name: !!python/name:os.system x", "and tags are not read; leave the tag out"),
        ("name: &a [*a]", "line 1: name: it is a list"),
        ("a: [b\nc: d: e", "line 2: it is no YAML"),
        ("a: b\n---\nc: d", "line 2: it is no YAML (but found another document)"),
        ("a: \x07", "line 1: it holds '\\x07', which has no place in YAML"),
        ("- max: 8", "line 1: it is no mapping; give lines such as `max: 8`"),
        ("", "there is nothing in it"),
        ("[" * 5000, "job.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(run: Run, folder: Path, text: str, said: str) -> None:
    Path("job.yaml").write_text(text)
    done = run(None, "submit", "job.yaml")
    assert (done.code, said in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"max": 0}', "job.json, line 1: max: 0 is too small"),
        ('{\n\t"max": 3,\n\t"max": 4\n}', "job.json, line 3: max: it stands in line 2 already"),
        ('{"max": 3,}', "job.json, line 1: it is no JSON ("),
        ("max: 3", "job.json, line 1: it is no JSON ("),
        ('{"name": null}', "job.json, line 1: name: it has no value"),
    ],
)
def test_json_is_held_to_the_same(run: Run, folder: Path, text: str, said: str) -> None:
    Path("job.json").write_text(text)
    done = run(None, "submit", "job.json")
    assert (done.code, said in done.err) == (2, True), done.err


def test_all_that_is_wrong_is_said_at_once(run: Run, folder: Path) -> None:
    Path("job.yaml").write_text("script: train.py\nmax: x\nmin: y\nmaxx: 3\n")
    assert run(None, "submit", "job.yaml").err == (
        "error: 3 things are wrong:\n"
        "  job.yaml, line 2: max: 'x' is no whole number\n"
        "  job.yaml, line 3: min: 'y' is no whole number\n"
        "  job.yaml, line 4: there is no key 'maxx'; is 'max' meant?\n"
    )


def test_what_the_server_refuses_is_said_with_its_line(run: Run, taking: Played, folder: Path) -> None:
    Path("job.yaml").write_text("script: train.py\nqueue: nowhere\npriority: 3\n")
    done = run(taking, "submit", "job.yaml", "--dataset", "none")
    assert "job.yaml, line 2: queue: there is no queue 'nowhere'" in done.err
    assert "\n  --dataset: there is no data set 'none'" in done.err


def test_what_is_no_file_of_text_is_refused(folder: Path) -> None:
    path = folder / "job.yaml"
    for content, said in ((b"name: \xff\n", "is not UTF-8"), (b"#" * (1 << 21), "longer than 1 MiB")):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=said):
            read_job_file(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_job_file(folder / "missing.yaml")


def test_a_text_is_what_is_written(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text("name: 1.10\nargs: [on, 0x10, 1e-3, 2026-01-01, '7', ~x]\narray: {a: [no, 010]}\n")
    asked = read_job_file(path).typed
    assert (asked["name"], asked["array"]) == ("1.10", {"a": ["no", "010"]})
    assert asked["args"] == ["on", "0x10", "1e-3", "2026-01-01", "7", "~x"]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLIANT_WEBHOOK", "PLIANT_MAIL", "PLIANT_WEBHOOK_SECRET"):
        monkeypatch.delenv(name, raising=False)
