"""What a submission in IBM's words means as a job."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ibm.rest.conftest import outcome

from pliant.api.jobs import JobRequest
from pliant.core.errors import InvalidInput
from pliant.ibm.rest.translate.arguments import parse
from pliant.ibm.rest.translate.flags import FLAGS
from pliant.ibm.rest.translate.frameworks import BUILT_IN
from pliant.ibm.rest.translate.hardware import Submission, read_sources, read_submission
from pliant.ibm.rest.translate.job_request import SubmissionContext, find_queue, to_job_request
from pliant.ibm.rest.translate.program import RUNNER, Program, of_words, program_of

FRAMEWORKS = {framework.name: framework for framework in BUILT_IN}
HERE = SubmissionContext(
    user="ada",
    python_version="3.11",
    queues=("default", "night", "training"),
    has_dataset=lambda name: name == "digits",
    has_environment=lambda name: name == "dlipy3",
    data_folder=lambda path: {"loose": "/data/loose", ".": "/data"}.get(path),
)


def wanted(text: str, framework: str = "edtPyTorch", **submission: Any) -> tuple[JobRequest, tuple[str, ...]]:
    arguments = parse(f"--exec-start {framework} --model-main t.py {text}")
    return to_job_request(
        arguments, FRAMEWORKS[framework], program_of(arguments), Submission.model_validate(submission), HERE
    )


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {"max_tasks": 1, "min_tasks": 1, "fixed": False, "name": "t.py", "script": "t.py", "priority": 5000}),
        ("--numWorker 3", {"max_tasks": 3, "min_tasks": 1}),
        ("--edt-options maxWorkers=4", {"max_tasks": 4}),
        ("--edt-options maxWorkers=4 --numWorker 2", {"max_tasks": 2}),
        ("--workerDeviceNum 2", {"slots_per_task": 2}),
        ("--gpuPerWorker 2", {"slots_per_task": 2}),
        ("--gpuPerWorker 2 --workerDeviceNum 3", {"slots_per_task": 3}),
        ("--msd-priority 7000", {"priority": 7000}),
        ("--appName mine", {"name": "mine"}),
        ("--consumer night", {"queue": "night"}),
        ("--consumer /ns/project/training/ada", {"queue": "training"}),
        ("--ig night", {"queue": "night"}),
        ("--ig night --consumer training", {"queue": "training"}),
        ("--cs-datastore-meta type=fs,data_path=digits", {"dataset": "digits", "data_dir": None}),
        ("--cs-datastore-meta data_path=/digits/", {"data_dir": "/digits/"}),
        ("--cs-datastore-meta type=fs,data_path=loose", {"data_dir": "/data/loose"}),
        ("--cs-datastore-meta type=fs", {"data_dir": "/data"}),
        ("--cs-datastore-meta data_path=", {"data_dir": "/data"}),
        ("""--data-source '[{"type": "fs"}]'""", {"data_dir": "/data"}),
        ("""--data-source '[{"type": "fs", "location": {"paths": "digits"}}]'""", {"dataset": "digits"}),
        ("--conda-env-name dlipy3 --python-version 3.6", {"environment": "dlipy3"}),
        ("--batch-size 200 pos", {"args": ("--batch-size", "200", "pos")}),
        ("--workerMemoryLimit 900M", {"memory_bytes": 900 << 20}),
        ("--workerMemoryLimit 1.5GB", {"memory_bytes": 3 << 29}),
    ],
)
def test_what_is_honoured(text: str, fields: dict[str, Any]) -> None:
    request, notes = wanted(text)
    assert {name: getattr(request, name) for name in fields} == fields
    assert notes == ()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("--workerMemory 4G", "--workerMemory is accepted and has no effect"),
        ("--exclusive", "--exclusive is accepted and has no effect: slots are never shared"),
        ("--edt-options maxWorkers=2,other=3", "--edt-options other=3 is accepted and has no effect"),
        ("--workerDeviceNum 0.5", "a worker gets 1 slot, not 0.5"),
        ("--workerDeviceNum 0", "a worker gets 1 slot, not 0"),
        ("--workerDeviceNum 1.5", "a worker gets 2 slots, not 1.5"),
        ("--workerDeviceType gpu", "a pool has slots of one kind"),
        ("--msd-priority 20000", "--msd-priority 20000 counts as 10000"),
        ("--submit-user ben", "the job is ada's"),
        ("--python-version 3.6", "--python-version 3.6: Python 3.11 runs"),
        ("""--data-source '[{"type": "s3"}]'""", "type 's3' has no effect"),
        ("""--data-source '[{"type": "fs", "location": {"paths": "digits,b"}}]'""", "'b' has no effect"),
    ],
)
def test_what_is_told(text: str, note: str) -> None:
    _, notes = wanted(text)
    assert [note in one for one in notes] == [True]


@pytest.mark.parametrize("text", ["--python-version 3.11", "--python-version 3", "--submit-user ada"])
def test_what_fits_anyway_is_not_told(text: str) -> None:
    assert wanted(text)[1] == ()


@pytest.mark.parametrize(
    ("text", "framework", "fields"),
    [
        ("--numWorker 0", "edtPyTorch", {"--numWorker"}),
        ("--numWorker 9999", "edtPyTorch", {"--numWorker"}),
        ("--numWorker 2", "PyTorch", {"--numWorker"}),
        ("--edt-options maxWorkers=many", "edtPyTorch", {"--edt-options"}),
        ("--edt-options many", "edtPyTorch", {"--edt-options"}),
        ("--workerDeviceNum 65", "edtPyTorch", {"--workerDeviceNum"}),
        ("--msd-priority 0", "edtPyTorch", {"--msd-priority"}),
        ("--msd-env A", "edtPyTorch", {"--msd-env"}),
        ("--consumer nobody --cs-datastore-meta data_path=none", "edtPyTorch", {"--consumer", "--cs-datastore-meta"}),
        ("--cs-datastore-meta type=s3,data_path=x", "edtPyTorch", {"--cs-datastore-meta"}),
        ("--data-source {", "edtPyTorch", {"--data-source"}),
        ("--data-source '[1]'", "edtPyTorch", {"--data-source.dataSource.0"}),
        ("--appName a/b", "edtPyTorch", {"--appName"}),
        ("--conda-env-name py27 --conda-home /opt/conda", "edtPyTorch", {"--conda-env-name"}),
    ],
)
def test_what_is_refused(text: str, framework: str, fields: set[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        wanted(text, framework)
    assert {problem.field for problem in error.value.problems} == fields


def test_an_unknown_environment_is_refused_with_what_would_run_else() -> None:
    with pytest.raises(InvalidInput, match=r"'py27'.* leave the option out: then the server's own Python 3\.11 runs"):
        wanted("--conda-env-name py27")


def test_hardware_counts_where_no_option_does() -> None:
    hardware = {"nodes": {"num_nodes": 2, "gpu": {"num_gpu": 2}, "mem": {"size": "1g"}, "cpu": {"units": 2}}}
    request, notes = wanted("", "distPyTorch", hardwareSpec=hardware)
    assert (request.max_tasks, request.slots_per_task, len(notes)) == (2, 2, 2)
    request, _ = wanted("--numWorker 3 --workerDeviceNum 1", "distPyTorch", hardwareSpec=hardware)
    assert (request.max_tasks, request.slots_per_task) == (3, 1)


def test_kinds_of_frameworks() -> None:
    single, _ = wanted("", "PyTorch")
    fixed, _ = wanted("--numWorker 3 --debug-level debug --msd-env A=1", "distPyTorch")
    assert (single.fixed, single.max_tasks, single.max_restarts) == (True, 1, 0)
    assert (fixed.fixed, fixed.min_tasks, fixed.max_tasks) == (True, 3, 3)
    assert fixed.env == {
        "A": "1",
        "DLI_LOGGER_LEVEL": "debug",
        "WMLA_NWORKER": "3",
        "WMLA_WORKER_NDEVICE": "1",
        "FRAME_WORK": "distPyTorch",
    }


@pytest.mark.parametrize("framework", ["edtPyTorch", "edtTensorflow", "edtKeras"])
def test_every_elastic_framework_of_ibms_is_an_elastic_job(framework: str) -> None:
    request, _ = wanted("--numWorker 3", framework)
    assert (request.fixed, request.min_tasks, request.max_tasks) == (False, 1, 3)
    assert request.env["FRAME_WORK"] == framework


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("--model-main a.py --x 1", Program(main="a.py", args=("--x", "1"), file="a.py")),
        ("--model-main /home/me/a.py", Program(main="a.py", file="a.py")),
        ("--model-dir d", Program(main="main.py", file="main.py")),
        ("--model-dir d --model-main sub/a.py", Program(main="sub/a.py", file="sub/a.py")),
        ("--model-dir /x/d --model-main d/a.py", Program(main="a.py", file="a.py")),
        ("--model-main run.sh 1", Program(words=("./run.sh", "1"), file="run.sh")),
        ("--user-cmd -- bash run.sh 'a b'", Program(words=("bash", "run.sh", "a b"))),
        ("--x --user-cmd -- ls -l", Program(words=("ls", "-l", "--x"))),
        ("--user-cmd -- python a.py --x 1", Program(main="a.py", args=("--x", "1"), file="a.py")),
        ("--user-cmd --model-main run.sh -- sh run.sh", Program(words=("sh", "run.sh"), file="run.sh")),
    ],
)
def test_programs(text: str, program: Program) -> None:
    found = program_of(parse(text))
    assert found == program
    assert (found.script == RUNNER) == bool(found.words)
    assert found.arguments == (program.words or program.args)


def test_a_module_is_no_script() -> None:
    assert of_words(("python", "-m", "x.py")).words == ("python", "-m", "x.py")
    assert of_words(("python",)).words == ("python",)


@pytest.mark.parametrize(
    "text", ["", "--appName x", "--user-cmd", "--user-cmd --", "--pbmodel-name VGG16 --pbmodel-cmd train"]
)
def test_what_is_no_program(text: str) -> None:
    with pytest.raises(InvalidInput):
        program_of(parse(text))


def test_queues_by_their_own_name_first() -> None:
    assert find_queue("a/b", ("b", "a/b"), field="f") == "a/b"
    with pytest.raises(InvalidInput, match=r"Instance group name x not found.*there are a, b"):
        find_queue("x", ("b", "a"), field="f")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(st.text(max_size=80) | _JSON.map(str))
def test_json_raises_nothing_but_invalid_input(text: str) -> None:
    for read in (read_submission, read_sources):
        found = outcome(read, text)
        assert not isinstance(found, InvalidInput) or found.problems


_OPTION = st.sampled_from(sorted(FLAGS)).flatmap(
    lambda name: st.sampled_from(["1", "2", "0", "night", "cpu", "A=B", "maxWorkers=3", "[]", "digits", "debug"]).map(
        lambda value: f"{name} {value}"
    )
)


@given(st.lists(_OPTION, max_size=8), st.sampled_from(sorted(FRAMEWORKS)))
def test_any_mixture_is_a_job_or_refused_in_words(options: list[str], framework: str) -> None:
    found = outcome(wanted, " ".join(options), framework)
    if isinstance(found, InvalidInput):
        assert all(problem.field and problem.message for problem in found.problems)
        return
    request, notes = found
    assert request.spec().max_tasks >= 1
    assert all(notes)
