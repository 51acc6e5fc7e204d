"""Populations over real processes: a child is its parent's state and its own values, and slots play no part."""

import pytest
from tests.e2e.pool import HERE, Pool
from tests.e2e.test_searches import outcome

from pliant.client import Client
from pliant.core.search import Trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

OPTIONS = {
    "parameters": {"lr": "log:1e-3..1", "momentum": "float:0..0.99:0.01"},
    "metric": "val_loss",
    "population": "4:2..6",
    "sampler": {"name": "random", "seed": 3},
    "virtual_workers": 4,
}


def breed(client: Client, name: str, max_tasks: int) -> list[Trial]:
    search = client.tune(HERE / "bred.py", name=name, max_tasks=max_tasks, **OPTIONS)  # type: ignore[arg-type]
    view = search.wait(timeout_s=120)
    assert (view.state, view.reason) == ("completed", "all 6 trials of its population have ended")
    return [*search.trials()]


def test_a_child_is_its_parents_state_with_its_own_values_whatever_the_slots(pool: Pool, client: Client) -> None:
    trials = breed(client, "narrow", 1)
    breed(client, "wide", 2)
    children = [one for one in trials if one.parent is not None]
    child = children[-1]
    job = client.job(child.job_id).job
    again = client.wait(client.rerun(child.job_id).id, timeout_s=60, poll_s=0.1)

    assert outcome(client, "wide") == outcome(client, "narrow")
    assert [one.parent_epoch for one in children] == [2, 4]
    assert child.values != trials[child.parent or 0].values
    assert child.state == "completed"
    assert (again.state, again.digest) == ("completed", job.digest)
    assert job.progress is not None
    rates = {one.epoch: one.value for one in client.metrics(child.job_id, names=["lr_now"]).points}
    assert rates == pytest.approx({4: 0.5**4, 5: 0.5**5, 6: 0.5**6})
    assert f"{child.parent} at 4" in pool.cli("searches", "trials", "narrow")
