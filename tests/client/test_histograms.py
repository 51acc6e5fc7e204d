"""The histograms of a job over REST, from what a task says to what a client reads."""

import pytest
from tests.server.played import PROGRESS, Played

from pliant.api.link import decode_from_task
from pliant.client import Client, NotFound
from pliant.core.errors import InvalidInput
from pliant.core.job import JobId
from pliant.core.link import Histograms
from pliant.core.tensor_histogram import MAX_NAME, TensorHistogram

NAMES = ("weights/fc1.weight", "gradients/fc1.weight", "große <b>/a?b#c%2F")


def a_histogram(name: str, step: int) -> TensorHistogram:
    return TensorHistogram(name=name, step=step, epoch=1, at=1000.0, lowest=-0.5, highest=0.5, counts=(1, 0, 7))


@pytest.fixture
def job_id(pool: Played) -> JobId:
    """Return a job whose leader has told histograms of two steps."""
    job_id = pool.add()
    pool.report(job_id, PROGRESS)
    leader = pool.store.generations(job_id)[-1].members[0]
    for step in (10, 20):
        pool.control.receive(leader, Histograms(histograms=tuple(a_histogram(name, step) for name in NAMES)))
    pool.tick()
    return job_id


def test_a_client_reads_what_the_leader_told(own: Client, job_id: JobId) -> None:
    listed = own.histogram_names(job_id).series
    assert [(one.name, one.num_histograms, one.first_step, one.last_step) for one in listed] == [
        (name, 2, 10, 20) for name in sorted(NAMES)
    ]
    for name in NAMES:
        assert own.histograms(job_id, name).histograms == (a_histogram(name, 10), a_histogram(name, 20))
    with pytest.raises(NotFound, match="has no histogram named 'weights/fc2'; list them"):
        own.histograms(job_id, "weights/fc2")


def test_a_job_that_logs_none_has_an_empty_list(pool: Played) -> None:
    job_id = pool.add()
    assert pool.http.get(f"/jobs/{job_id}/histograms").json() == {"series": []}
    assert pool.http.get(f"/jobs/{job_id}/histograms/{'x' * (MAX_NAME + 1)}").status_code == 422


@pytest.mark.parametrize(
    "histograms",
    ["{}", "[1]", '[{"name": "a"}]', '[{"name": "a", "step": "many"}]', "null", '[{"counts": [1.5]}]', '"text"'],
)
def test_a_message_of_another_shape_is_refused(histograms: str) -> None:
    with pytest.raises(InvalidInput, match=r"histograms"):
        decode_from_task(f'{{"kind":"histograms","histograms":{histograms}}}')
