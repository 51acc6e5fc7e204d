"""What control writes into a task's environment is what the task reads, and the page for people lists all of it."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from pliant.api.derive import settable
from pliant.core.job import JobId, TaskId
from pliant.core.task_environment import (
    ElasticTask,
    FixedTask,
    LoneTask,
    TaskArray,
    TaskData,
    TaskEnvironment,
    TaskFolders,
    TaskNode,
    TaskTrial,
    Variable,
)

PAGE = Path(__file__).parents[2] / "docs/task-environment.md"
ELASTIC = ElasticTask(url="https://here", token="secret", virtual_workers=8, max_tasks=4, mode="fast", audit=True)
FIXED = FixedTask(
    master_address="10.0.0.1",
    master_port=4000,
    rank=0,
    size=2,
    local_rank=0,
    local_size=1,
    node_rank=0,
    num_nodes=2,
    num_restarts=0,
    max_restarts=3,
    run_id="job-1",
)


def environment(**more: Any) -> TaskEnvironment:
    return TaskEnvironment(task_id=TaskId("job-1.1"), job_id=JobId("job-1"), **more)


@pytest.mark.parametrize(
    "told",
    [
        environment(elastic=ELASTIC, folders=TaskFolders(result="/r", log="/r/log"), weights="/w.pt"),
        environment(fixed=FIXED, is_elastic="false", data=TaskData(folder="/d", dataset="d", validation="/d/v")),
        environment(array=TaskArray(id="array-1", index="0")),
        environment(trial=TaskTrial(search="lr", number=0)),
    ],
    ids=["elastic", "fixed", "array", "trial"],
)
def test_a_task_reads_what_was_written(told: TaskEnvironment) -> None:
    assert TaskEnvironment.from_env(told.to_env()) == told


def test_a_value_is_written_under_all_its_names_and_nothing_for_none() -> None:
    env = environment(data=TaskData(validation="/v"), elastic=ELASTIC).to_env()

    assert env["VALIDATION_DATA_DIR"] == env["VAL_DATA_DIR"] == "/v"
    assert {env[name] for name in ("PLIANT_JOB_ID", "TRAINING_ID", "DLI_EXECID", "TASK_JOB_ID")} == {"job-1"}
    assert (env["PLIANT_CHECKPOINT_EVERY_S"], env["PLIANT_AUDIT"]) == ("600", "1")
    assert not {"PLIANT_WEIGHTS", "PLIANT_RESUME_FROM", "PLIANT_CA", "PLIANT_FIXED", "DATA_DIR"} & env.keys()


def test_what_the_server_asks_for_reaches_the_task() -> None:
    base = dict.fromkeys(("PLIANT_URL", "PLIANT_TASK_TOKEN", "PLIANT_TASK_ID", "PLIANT_JOB_ID", "LOG_DIR"), "x")
    base |= {"PLIANT_VIRTUAL_WORKERS": "8", "RESULT_DIR": "/r", "PLIANT_SERVER_FILE": ""}
    asked = {"PLIANT_MODE": "fast", "PLIANT_RESUME_FROM": "/c", "PLIANT_CHECKPOINT_EVERY_S": "0"}

    plain = TaskEnvironment.from_env(base).elastic
    told = TaskEnvironment.from_env(base | asked).elastic

    usual = ElasticTask(url="x", token="x", virtual_workers=8, checkpoint_every_s=600.0, mode="exact", resume_from=None)
    assert plain == usual
    assert told == ElasticTask(
        url="x", token="x", virtual_workers=8, checkpoint_every_s=0.0, mode="fast", resume_from="/c"
    )
    assert TaskNode.from_env({}) == TaskNode(host="127.0.0.1", num_threads=1, memory_dir=None)


def test_a_script_without_a_server_is_told_what_pliant_run_was_asked_for() -> None:
    assert LoneTask.from_env({}) == LoneTask(virtual_workers=None, mode="exact")
    asked = LoneTask(virtual_workers=3, mode="fast")
    assert LoneTask.from_env(asked.to_env()) == asked


def test_a_variable_that_is_needed_and_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="PLIANT_JOB_ID"):
        TaskEnvironment.from_env({"PLIANT_TASK_ID": "job-1.1"})


def rows(part: type) -> Iterator[tuple[str, str]]:
    """Yield every variable of a part, and of the parts in it, with its line in the page."""
    for one in settable(part):
        names = [
            name for said in getattr(one.hint, "__metadata__", ()) if isinstance(said, Variable) for name in said.names
        ]
        if names:
            assert one.doc, f"{part.__name__}.{one.name} says nothing about itself"
        shown = ", ".join(f"`{name}`" for name in names)
        for name in names:
            yield name, f"| {shown} | {one.doc} |"
        for inner in (one.hint, *get_args(one.hint)):
            if is_dataclass(inner) and isinstance(inner, type):
                yield from rows(inner)


def test_the_page_lists_every_variable_and_each_is_named_once() -> None:
    found = [*rows(TaskEnvironment), *rows(TaskNode)]
    names = [name for name, _ in found]
    lines = list(dict.fromkeys(line for _, line in found))

    assert len(names) == len(set(names)), "a variable is named twice"
    listed = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(lines), "docs/task-environment.md has to say:\n" + "\n".join(lines)
