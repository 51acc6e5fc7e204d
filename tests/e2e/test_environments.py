"""Jobs that name their environment, through a real server: built once, reused, and refused before a slot is taken."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.catalog.environments.wheels import offline, tiny_wheel
from tests.e2e.pool import HERE, Pool

from pliant.core.event import EventKind

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

WAIT_S = 180.0


DICE = """
from plugins.core.base_plugin_opt import BasePluginOptimizer
from tinything import ANSWER


class PluginOptimizer(BasePluginOptimizer):
    def search(self, number_samples, last_exp_results=None):
        print("tinything", ANSWER, flush=True)
        return [{"width": 8 + len(last_exp_results or ())}]
"""


@pytest.fixture(scope="module")
def offline_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("offline")
    folder.chmod(0o755)
    tiny_wheel(folder / "wheels")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in offline(folder / "wheels").items():
            environment.setenv(name, value)
        server = Pool(folder / "home", slots=2)
        server.up()
        yield server
        server.close()


def project(folder: Path, requirements: str) -> Path:
    """Return an elastic training that needs what it does not bring."""
    folder.mkdir()
    says = "import tinything, sys\nprint('tinything', tinything.ANSWER, sys.prefix, flush=True)\n"
    (folder / "train.py").write_text(says + (HERE / "paced.py").read_text())
    (folder / "requirements.txt").write_text(requirements)
    (folder / "pace").write_text("0")
    return folder


def test_a_job_brings_its_requirements(offline_pool: Pool, tmp_path: Path) -> None:
    pool = offline_pool
    code = project(tmp_path / "project", "tinything >= 1.0\n")
    training = ("--max", "1", "--requirements", "requirements.txt", "--script", "train.py")
    args = ("--pace", str(code / "pace"), "--epochs", "2")
    with pool.client() as client:
        first = pool.submit(code, *training, args=args)
        pool.until(
            lambda: (
                client.job(first).tasks == () and client.why(first).sentence.startswith("waits for its environment: ")
            ),
            "it says what it waits for, and has no task",
        )
        job = client.wait(first, timeout_s=WAIT_S)
        assert job.state == "completed", job.reason
        (view,) = client.environments.list()
        venv = pool.home / "environments" / view.key / "venv"
        assert f"tinything 1.0 {venv}" in "\n".join(client.read_log(first, f"{first}.1", "stdout"))

        (code / "requirements.txt").write_text("# the same\ntinything>=1.0")
        second = pool.submit(code, *training, args=args)
        assert client.wait(second, timeout_s=WAIT_S).state == "completed"
        said = [event.message for event in client.events(job_id=second).events if event.kind is EventKind.JOB_PREPARED]
        waited = [message for message in said if "waits" in message and "requirements are being read" not in message]
        assert waited == [], "it did not have to wait for a build"
        assert [found.key for found in client.environments.list()] == [view.key]
        assert "tinything" in pool.cli("env", "log", view.name)

        (code / "requirements.txt").write_text("tinything==9\n")
        third = pool.submit(code, *training, args=args)
        broken = client.wait(third, timeout_s=WAIT_S)
        assert (broken.state, broken.started_at) == ("failed", None)
        assert client.job(third).tasks == ()
        assert client.usage(job_id=third).points == ()
        shown = " ".join(pool.cli("show", third).split())
        assert "and no slot was taken" in shown
        assert "tinything==9" in shown


def test_an_algorithm_in_a_named_environment_chooses_to_the_end_and_keeps_it(
    offline_pool: Pool, tmp_path: Path
) -> None:
    pool = offline_pool
    (tmp_path / "dice").mkdir()
    (tmp_path / "dice" / "optimizer.py").write_text(DICE)
    (tmp_path / "requirements.txt").write_text("tinything >= 1.0\n")
    install = ("algorithms", "add", str(tmp_path / "dice"))
    assert "install it with an environment that has it" in pool.cli(*install, code=2)
    assert "there is no environment 'helpers'" in pool.cli(*install, "--environment", "helpers", code=2)
    pool.cli("env", "add", "helpers", "--requirements", str(tmp_path / "requirements.txt"))
    with pool.client() as client:
        pool.until(lambda: client.environments.get("helpers").state == "ready", "it is built", WAIT_S)
    pool.cli(*install, "--environment", "helpers")

    limits = ("--param", "width=int:4..32", "--param", "epochs=fixed:1", "--max-trials", "2", "--parallel", "1")
    pool.cli("tune", str(HERE / "tuned.py"), "--sampler", "dice", "--metric", "val_loss", *limits, "--wait")

    with pool.client() as client:
        trials = list(client.searches.trials("tuned"))
    assert [(one.state, one.values["width"]) for one in trials] == [("completed", 8), ("completed", 9)]
    assert "tinything 1.0" in pool.cli("searches", "log", "tuned", "--algorithm")
    assert "is used by the algorithm dice" in pool.cli("env", "remove", "helpers", code=5)
    pool.cli("algorithms", "remove", "dice")
    pool.cli("env", "remove", "helpers")
