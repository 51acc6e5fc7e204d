"""What the shapes of jobs say on the wire."""

from pydantic import TypeAdapter

from pliant.core.job import JobId, NodeId, Task, TaskId
from pliant.core.lifecycle import TaskState

TASK = Task(
    id=TaskId("job-1.1"),
    job_id=JobId("job-1"),
    node_id=NodeId("local"),
    slots=(0,),
    state=TaskState.TRAINING,
    started_at=1.0,
    last_message=7,
)


def test_the_number_of_a_tasks_last_message_keeps_its_name_on_the_wire() -> None:
    adapter = TypeAdapter(Task)
    written = adapter.dump_python(TASK, by_alias=True)

    assert (written["told"], "last_message" in written) == (7, False)
    assert adapter.validate_json(adapter.dump_json(TASK, by_alias=True)) == TASK
