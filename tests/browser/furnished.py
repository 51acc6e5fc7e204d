"""A pool with something of everything in it, made once for the tests that look at pages of things."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.pool import HERE, ROOT, Pool
from tests.e2e.test_models import paint

from pliant.api.environments import EnvironmentRequest
from pliant.api.models import ModelRequest, TemplateRequest, TrainingRequest
from pliant.api.queues import GroupRequest, QueueRequest
from pliant.client import Client

LONG: Final = "one_very_long_word_" * 6 + "without"[:6]
"""A name of 120 characters in one word."""
ENDPOINT_NAME: Final = "digits"
SLOW: Final = 120.0
"""Seconds that a build or a training may take on a busy machine."""

_SERVES: Final = """
class Model:
    inputs = [{{"name": "pixels", "datatype": "FP32", "shape": [-1, 3, 8, 8]}}]

    def load(self):
        print("loaded version {number}")

    def predict(self, batch):
        return [{{"scores": [float(one["pixels"].mean()), 0.25, {number}.0]}} for one in batch]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """The names of what is there."""

    done: str
    running: str
    waiting: str
    """The ids of jobs: one has completed, one trains on four slots, one waits for eight."""
    search: str = "lr-of-tuned"
    endpoint: str = ENDPOINT_NAME
    model: str = "colours"
    training: str = "first"
    template: str = "images"
    pictures: str = "colours"
    rows: str = "points"
    built: str = "helpers"
    failed: str = "broken"
    queue: str = "night"
    group: str = "half"
    person: str = "a-user"

    def paths(self) -> dict[str, str]:
        """Return the addresses of all pages about these things, by the names of their pictures."""
        jobs, search, endpoint = f"/jobs/{self.running}", f"/searches/{self.search}", f"/endpoints/{self.endpoint}"
        return {
            "job-done": f"/jobs/{self.done}",
            "job-waiting": f"/jobs/{self.waiting}",
            "job-diff": f"{jobs}/config?diff={self.done}",
            "jobs-compare": f"/jobs/compare?ids={self.done.removeprefix('job-')},{self.running.removeprefix('job-')}",
            "endpoint": endpoint,
            **{f"endpoint-{tab}": f"{endpoint}/{tab}" for tab in ("versions", "profile", "logs")},
            "endpoint-test-picture": f"{endpoint}/test?with=picture",
            "endpoint-test-json": f"{endpoint}/test?with=json",
            "search": search,
            **{f"search-{tab}": f"{search}/{tab}" for tab in ("trials", "plots")},
            "template": f"/models/templates/{self.template}",
            "model": f"/models/{self.model}",
            "model-trainings": f"/models/{self.model}/trainings",
            "training": f"/models/{self.model}/trainings/{self.training}",
            "dataset-pictures": f"/datasets/{self.pictures}",
            "dataset-preview": f"/datasets/{self.pictures}/preview",
            "dataset-rows": f"/datasets/{self.rows}",
            "dataset-rows-preview": f"/datasets/{self.rows}/preview",
            "environment-built": f"/environments/{self.built}",
            "environment-log": f"/environments/{self.built}/log",
            "environment-failed": f"/environments/{self.failed}",
            "queue": f"/queues/{self.queue}",
            "group": f"/queues/groups/{self.group}",
            "person": f"/people/{self.person}",
        }


def furnish(pool: Pool, folder: Path) -> Furniture:
    """Make something of everything over the REST API; `folder` may be read by jobs, and has a wheel for builds."""
    with pool.client() as client:
        _build(client)
        _lay_out_pool(client)
        _add_data(client, folder)
        _deploy(client, folder)
        _search(client)
        _train(client)
        done, running, waiting = _submit(pool, folder)
        _ask(client)
        client.wait(done, timeout_s=SLOW)
        client.wait(client.models.training("colours", "first").job_id, timeout_s=SLOW)
        client.searches.wait("lr-of-tuned", timeout_s=SLOW)
        for name, state in (("helpers", "ready"), ("broken", "failed")):
            pool.until(lambda name=name, state=state: client.environments.get(name).state == state, name, SLOW)  # type: ignore[misc]
        pool.until(lambda: pool.training(client, running), "it trains")
    return Furniture(done=done, running=running, waiting=waiting)


def _build(client: Client) -> None:
    for name, requirements in (("helpers", "tinything >= 1.0\n"), ("broken", "tinything == 9\n")):
        client.environments.add(EnvironmentRequest.model_validate({"name": name, "requirements": requirements}))


def _lay_out_pool(client: Client) -> None:
    client.groups.add(
        GroupRequest.model_validate(
            {"name": "half", "hosts": {"all": True}, "slots_per_host": "max(ngpus, 4)", "description": "Half of each."}
        )
    )
    client.queues.add(
        QueueRequest.model_validate(
            {"name": "night", "resource_group": "half", "policy": "priority", "weight": 2, "preemption": False}
        )
    )


def _add_data(client: Client, folder: Path) -> None:
    paint(folder / "pictures" / "train", num=8)
    paint(folder / "pictures" / "test", num=4)
    client.datasets.add_files(folder / "pictures", "colours", kind="images")
    rows = [f"{a / 10},{b / 5},word-{a}-{b},{'=1+1' if b else ''}\n" for a in range(-10, 10) for b in range(-5, 5)]
    (folder / "points.csv").write_text("a,b,text,formula\n" + "".join(rows))
    client.datasets.add_files(folder / "points.csv", "points", kind="csv")


def _deploy(client: Client, folder: Path) -> None:
    for number in (1, 2):
        code = folder / f"serves-{number}"
        code.mkdir()
        (code / "serve.py").write_text(_SERVES.format(number=number))
        client.endpoints.deploy(ENDPOINT_NAME, code, kernel_min=1, kernel_max=2)
        client.endpoints.wait(ENDPOINT_NAME, timeout_s=SLOW)
    client.endpoints.split(ENDPOINT_NAME, {1: 90, 2: 10})


def _search(client: Client) -> None:
    client.tune(
        HERE / "tuned.py",
        parameters={"lr": "log:1e-3..1", "width": "int:4..32", "epochs": "fixed:2"},
        name="lr-of-tuned",
        metric="val_loss",
        max_trials=6,
        parallel=2,
        sampler={"name": "random", "seed": 3},
        max_tasks=1,
    )


def _train(client: Client) -> None:
    folder = ROOT / "examples/templates/images"
    described = tomllib.loads((folder / "template.toml").read_text())
    client.templates.add(folder, TemplateRequest.model_validate(described))
    client.datasets.wait("colours", timeout_s=SLOW)
    client.models.add(
        ModelRequest.model_validate(
            {
                "name": "colours",
                "template": "images",
                "dataset": "colours",
                "max_workers": 1,
                "histograms_every": 1,
                "hyperparameters": {"learning_rate": 0.01, "batch_size": 12, "epochs": 6},
                "parameters": {"size": 16, "width": 8},
            }
        )
    )
    client.models.train("colours", TrainingRequest.model_validate({"name": "first"}))


def _submit(pool: Pool, folder: Path) -> tuple[str, str, str]:
    pace = folder / "pace"
    pace.write_text("0.5")
    script = HERE / "paced.py"
    done = pool.submit(script, "--max", "2", "--name", "resnet", "--tag", "team=vision", args=("--epochs", "2"))
    endless = ("--pace", str(pace), "--epochs", "500")
    histograms = ("--histograms-every", "2")
    running = pool.submit(script, "--max", "3", "--name", LONG, "--queue", "night", *histograms, args=endless)
    waiting = pool.submit(script, "--min", "8", "--max", "8", "--name", "bert", args=("--epochs", "2"))
    return done, running, waiting


def _ask(client: Client) -> None:
    """Ask the endpoint a few times, so that there is something to say of its load."""
    pixels = [[[[0.5] * 8] * 8] * 3]
    for _ in range(20):
        client.endpoints.predict(ENDPOINT_NAME, {"pixels": pixels})
