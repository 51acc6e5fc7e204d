"""The tutorial of the system that Pliant follows, its steps 3 to 9, played by clicks in one server with eight slots.

An administrator makes a resource group by the formula `ngpus` and a queue over it. A user uploads the CIFAR-10 batches,
adds a template, makes a model, and trains it twice: the two share the slots, a priority changes, the first one ends.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect
from tests.browser.cifar import CLASSES, write_batches
from tests.browser.conftest import Visitor
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool

from pliant.api.job_views import JobDetail

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

GROUP: Final = "ComputeHostsGPU"
QUEUE: Final = "sig-elastic"
DATASET: Final = "cifar10EDTpytorch"
TEMPLATE: Final = "PytorchResnet"
MODEL: Final = "resnet-elastic"
NUM_PICTURES: Final = 300
"""Of a batch: six of them are more than one chunk of an upload, 8 MiB."""
NAME: Final = re.compile(r"^Name\b(?! of)")
"""A required field has a star behind its name."""
CODE: Final = Path(__file__).parent / "resnet.py"
DESCRIPTION: Final = """framework = "PyTorch"
main_file = "main.py"
engines = ["elastic", "single"]

[[parameters]]
name = "pace"
kind = "text"
default = "{pace}"
description = "The file that says how long a batch takes, seconds."
"""


def test_the_tutorial_is_played_by_clicks(visit: Any, pool: Pool, tmp_path: Path) -> None:
    paces = [Pace(tmp_path / f"pace-{number}", 0.3) for number in (1, 2)]
    admin = visit(None)
    admin.page.goto(pool.cli("console", "--no-browser").strip())
    make_group(admin)
    make_queue(admin)

    user = visit("a-user")
    batches = tmp_path / "cifar-10-batches-py"
    write_batches(batches, num_pictures=NUM_PICTURES)
    upload_batches(user, batches)
    look_at_data(user, pool)
    add_template(user, lay_template(tmp_path / TEMPLATE, paces[0]))
    make_model(user)

    watcher = visit("a-user")
    watcher.goto("/?from=-240")
    first = train(user, "training-no-1", pool)
    holds(watcher.page, first, 8)
    expect(admin.page.get_by_text("used 8 slots · deserves 8")).to_be_visible()
    alone = Run.of(pool, first, size=8)
    second = train(user, "training-no-2", pool, pace=paces[1])
    holds(watcher.page, second, 4)
    holds(watcher.page, first, 4)
    shared = [Run.of(pool, job, size=4) for job in (first, second)]

    raise_priority(user, pool, first, second)
    holds(watcher.page, second, 5)
    holds(watcher.page, first, 3)
    ranked = [Run.of(pool, job, size=size) for job, size in ((first, 3), (second, 5))]
    assert alone.step < shared[0].step < ranked[0].step
    assert shared[1].step < ranked[1].step
    assert ranked[0].processes < shared[0].processes < alone.processes, "who stays is not started again"
    assert shared[1].processes < ranked[1].processes
    assert [run.num_again for run in ranked] == [0, 0], "no task was lost, no step was done again"

    paces[0].set(0)
    pool.until(lambda: pool.json("show", first)["job"]["state"] == "completed", "the first ends", 90)
    holds(watcher.page, second, 8)
    tell_the_story(watcher, pool, first, second)
    fetch_weights(user, pool, first)


def make_group(visitor: Visitor) -> None:
    """Step 3: a resource group by a formula; its members with the attribute that the formula counts."""
    page = visitor.page
    page.get_by_role("link", name="Queues", exact=True).first.click()
    page.get_by_role("button", name="New group").click()
    dialog = page.get_by_role("dialog", name="New resource group")
    dialog.get_by_role("textbox", name=NAME).fill(GROUP)
    dialog.get_by_text("Number or formula").click()
    dialog.get_by_role("textbox", name="Formula").fill("min(8, ngpu)")
    expect(dialog.get_by_text("position 8: 'ngpu' is not known; there are ngpus, ncpus, min, max")).to_be_visible()
    dialog.get_by_role("textbox", name="Formula").fill("ngpus")
    dialog.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="ngpus").check()
    members = dialog.get_by_role("table", name="Member hosts")
    expect(members.get_by_role("columnheader", name="ngpus")).to_be_visible()
    expect(members.get_by_role("row").nth(1)).to_contain_text("8")
    assert visitor.violations() == []
    visitor.picture("walk-3-group")
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=GROUP, level=1)).to_be_visible()
    page.get_by_role("link", name="Events", exact=True).first.click()
    expect(page.get_by_role("list", name="Events, newest first")).to_contain_text(GROUP)


def make_queue(visitor: Visitor) -> None:
    """Step 4: a queue over the group whose jobs share fairly and can be preempted; it deserves all that there is."""
    page = visitor.page
    page.get_by_role("link", name="Queues", exact=True).first.click()
    page.get_by_role("link", name=GROUP, exact=True).click()
    page.get_by_role("link", name="New queue").click()
    dialog = page.get_by_role("dialog", name="New queue")
    dialog.get_by_role("textbox", name=NAME).fill(QUEUE)
    expect(dialog.get_by_label("Resource group")).to_have_value(GROUP)
    dialog.get_by_text("fair share", exact=True).click()
    expect(dialog.get_by_role("switch", name="Preemption")).to_be_checked()
    assert visitor.violations() == []
    visitor.picture("walk-4-queue")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=QUEUE, level=1)).to_be_visible()
    expect(page.get_by_text("0 of 8", exact=True)).to_be_visible()


def upload_batches(visitor: Visitor, folder: Path) -> None:
    """Steps 5 to 7: a data set of the folder; the page is loaded again while it is sent, and the upload goes on."""
    page = visitor.goto("/")
    page.get_by_role("link", name="Data sets", exact=True).first.click()
    page.get_by_role("link", name="New data set").first.click()  # where there is none yet, the page offers it twice
    page.get_by_role("radio", name="Images").click()
    page.get_by_role("textbox", name=NAME).fill(DATASET)
    page.locator("input[webkitdirectory]").set_input_files(folder)
    expect(page.get_by_text("cifar-10-batches-py/")).to_be_visible()

    second_chunk = re.compile(r"/v1/uploads/[^/]+\?offset=[1-9]")
    page.route(second_chunk, lambda _: None)  # a line so slow that the second chunk never arrives
    with page.expect_request(second_chunk):
        page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("progressbar", name="Sending")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="MB of")).to_contain_text("8.4 MB of 10.3 MB")
    visitor.picture("walk-7-upload")
    asked: list[str] = []
    page.once("dialog", lambda dialog: _leave(dialog, asked))
    page.reload()
    assert asked == ["beforeunload"], "who leaves in mid-upload is asked"
    page.unroute_all(behavior="ignoreErrors")
    visitor.settle()

    expect(page.get_by_text("8.4 MB of 10.3 MB were sent before")).to_be_visible()
    page.locator("input[webkitdirectory]").set_input_files(folder)
    chunks: list[str] = []
    page.on("request", lambda request: chunks.extend(re.findall(r"/v1/uploads/.*offset=(\d+)", request.url)))
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=DATASET)).to_be_visible()
    assert chunks == [str(8 << 20)], "only the rest is sent"


def _leave(dialog: Dialog, asked: list[str]) -> None:
    asked.append(dialog.type)
    dialog.accept()


def look_at_data(visitor: Visitor, pool: Pool) -> None:
    """What was imported: its checksum, its parts, its pictures."""
    page = visitor.page
    expect(page.get_by_text("Ready", exact=True).first).to_be_visible(timeout=60_000)
    with pool.client() as client:
        (content,) = (dataset.content for dataset in client.datasets.list() if dataset.name == DATASET)
    expect(page.get_by_text(content.checksum)).to_be_visible()
    assert content.splits == {"train": 1350, "validation": 150, "test": 300}
    for num in content.splits.values():
        expect(page.get_by_text(f"{num:,}", exact=True).first).to_be_visible()
    visitor.picture("walk-7-data")
    page.get_by_role("link", name="Preview").click()
    pictures = page.get_by_role("list", name="Preview").get_by_role("img")
    expect(pictures.first).to_be_visible()
    assert pictures.first.evaluate("picture => [picture.naturalWidth > 0, picture.complete]") == [True, True]
    for name in CLASSES:
        expect(page.get_by_role("list", name="Preview").get_by_text(name, exact=True).first).to_be_visible()
    visitor.picture("walk-7-preview")


def lay_template(folder: Path, pace: Pace) -> Path:
    folder.mkdir()
    shutil.copy(CODE, folder / "main.py")
    (folder / "template.toml").write_text(DESCRIPTION.format(pace=pace))
    return folder


def add_template(visitor: Visitor, folder: Path) -> None:
    """Step 8, first half: the folder of code becomes a template; it says itself what it is."""
    page = visitor.page
    page.get_by_role("link", name="Models", exact=True).first.click()
    page.get_by_role("link", name="Templates", exact=True).click()
    page.get_by_role("button", name="Add template").first.click()
    dialog = page.get_by_role("dialog", name="Add a template")
    dialog.locator("input[webkitdirectory]").set_input_files(folder)
    expect(dialog.get_by_text(re.compile("2.files"))).to_be_visible()
    expect(dialog.get_by_label("Framework")).to_have_value("PyTorch")
    dialog.get_by_role("textbox", name=NAME).first.fill(TEMPLATE)
    assert visitor.violations() == []
    visitor.picture("walk-8-template")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", name=TEMPLATE, level=1)).to_be_visible()
    visitor.settle()
    assert visitor.violations() == []


def make_model(visitor: Visitor) -> None:
    """Step 8, second half: a model of the template with the data set; what is wrong is said by the server."""
    page = visitor.page
    page.get_by_role("link", name="Models", exact=True).first.click()
    page.get_by_role("button", name="New model").first.click()
    dialog = page.get_by_role("dialog", name="New model")
    choose(dialog, "Template", TEMPLATE)
    choose(dialog, "Data set", DATASET)
    choose(dialog, "Queue", QUEUE)
    expect(dialog.get_by_label("Training engine")).to_have_value("elastic")
    dialog.get_by_label("Epochs").fill("0")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_text("0 is too small; give 1 or more")).to_be_visible()
    expect(dialog.get_by_text("'' cannot be taken; give letters")).to_be_visible()
    assert visitor.violations() == []
    visitor.picture("walk-8-errors")
    dialog.get_by_role("textbox", name=NAME).fill(MODEL)
    dialog.get_by_label("Epochs").fill("20")
    dialog.get_by_label("Batch size", exact=True).fill("64")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", name=MODEL, level=1)).to_be_visible()


def train(visitor: Visitor, name: str, pool: Pool, *, pace: Pace | None = None) -> str:
    """Step 9: train the model with eight workers at most; return the job's id."""
    page = visitor.page
    page.get_by_role("link", name="Models", exact=True).first.click()
    page.get_by_role("link", name=MODEL, exact=True).first.click()
    page.get_by_role("button", name="Train…").click()
    dialog = page.get_by_role("dialog", name=f"Train {MODEL}")
    dialog.get_by_label("Workers at most").fill("8")
    dialog.get_by_label("Name of the training").fill(name)
    if pace is not None:
        dialog.get_by_role("button", name="Hyperparameters for this training only").click()
        dialog.get_by_label("pace").fill(str(pace))
        assert visitor.violations() == []
    visitor.picture(f"walk-9-{name}")
    dialog.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    visitor.settle()
    with pool.client() as client:
        return client.models.training(MODEL, name).job_id


def choose(scope: Locator, label: str, option: str) -> None:
    scope.get_by_role("combobox", name=re.compile(rf"^{label}\b")).click()
    scope.page.get_by_role("option", name=option, exact=True).click()


def holds(page: Page, job: str, slots: int) -> None:
    """Wait until the legend of the chart says that a job has so many slots now."""
    entry = (
        page.get_by_role("listitem")
        .filter(has=page.get_by_role("link", name=re.compile(rf"^{job}\b")))
        .filter(has=page.get_by_role("button"))
    )
    expect(entry.first.locator("b")).to_have_text(str(slots), timeout=45_000)


@dataclass(frozen=True)
class Run:
    """How far a job is, who trains it, and what of it had to be done again."""

    step: int
    processes: frozenset[int | None]
    num_again: int
    """Tasks that were lost, and steps."""

    @classmethod
    def of(cls, pool: Pool, job_id: str, *, size: int) -> "Run":
        """Return how it is as soon as so many tasks train."""
        with pool.client() as client:
            trains = pool.until(lambda: _trains(client.job(job_id), size), f"{job_id} trains with {size} tasks")
        return cls(*trains)


def _trains(detail: JobDetail, size: int) -> tuple[int, frozenset[int | None], int] | None:
    processes = frozenset(task.pid for task in detail.tasks if task.state == "training")
    if detail.job.progress is None or len(processes) != size:
        return None
    num_lost = sum(task.state == "lost" for task in detail.tasks)
    return detail.job.progress.step, processes, num_lost + detail.job.num_redone_steps


def raise_priority(visitor: Visitor, pool: Pool, first: str, second: str) -> None:
    """Step 9.4: the slider of the second job to its end; who would get what is said, and then is so."""
    page = visitor.page
    page.get_by_role("link", name=second, exact=True).first.click()
    visitor.settle()
    page.get_by_role("slider", name="Priority").press("End")
    expect(page.get_by_role("textbox", name="Priority")).to_have_value("10,000")
    preview = page.get_by_role("table", name="If applied now")
    expect(preview.get_by_role("row").filter(has_text=second)).to_contain_text("▴ 5")
    expect(preview.get_by_role("row").filter(has_text=first)).to_contain_text("▾ 3")
    visitor.picture("walk-9-priority")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status").filter(has_text="Applied")).to_be_visible()
    with pool.client() as client:
        pool.until(lambda: client.job(second).job.num_slots == 5, "it has five")
        sentence = client.why(second).sentence
    assert sentence in pool.cli("why", second)
    expect(page.get_by_role("region", name="Why")).to_contain_text(sentence)


def tell_the_story(visitor: Visitor, pool: Pool, first: str, second: str) -> None:
    """Step 9.6: the chart shows what was, to the slot-second; the same in rows says why."""
    page = visitor.page
    page.get_by_role("button", name="Look closer").click()
    expect(page).to_have_url(re.compile(r"from=-120\b"))
    visitor.settle()
    visitor.picture("walk")
    with pool.client() as client:
        now = client.cluster().now
        usage = [(point.at, point.num_slots) for point in client.usage(job_id=first).points]
        newest = client.why(second).sentence
    used = sum(slots * (end - at) for (at, slots), (end, _) in zip(usage, [*usage[1:], (now, 0)], strict=True))
    answer = visitor.context.request.get(f"{visitor.url}/v1/slots/chart?from=-900").json()
    assert next(key["slot_seconds"] for key in answer["keys"] if key["id"] == first) == pytest.approx(used, abs=0.01)

    page.get_by_role("list", name="What happened").get_by_role("button").last.click()
    expect(page.get_by_text(newest).last).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Table").click()
    rows = page.get_by_role("region", name="What happened").get_by_role("row")
    for job, change, why in (
        (first, "8 → 4", "in the ratio of priorities 5000:5000"),
        (first, "4 → 3", "in the ratio of priorities 5000:10000"),
        (second, "4 → 5", "in the ratio of priorities 10000:5000"),
        (second, "5 → 8", newest),
    ):
        row = rows.filter(has=page.get_by_role("cell", name=job, exact=True)).filter(has_text=change)
        expect(row).to_contain_text(why)


def fetch_weights(visitor: Visitor, pool: Pool, job: str) -> None:
    """What was learned comes through the page as the training wrote it."""
    page = visitor.page
    page.get_by_role("link", name="Models", exact=True).first.click()
    page.get_by_role("link", name="Trainings", exact=True).click()
    expect(page.get_by_role("link", name=re.compile("training-no-"))).to_have_count(2)  # not those of a moment ago
    page.get_by_role("link", name="training-no-1").click()
    with page.expect_download() as fetched:
        page.get_by_role("link", name="Weights", exact=True).click()
    content = fetched.value.path().read_bytes()
    written = [path.read_bytes() for path in (pool.home / "jobs" / job / "result").rglob("*.pt")]
    assert hashlib.sha256(content).hexdigest() in [hashlib.sha256(one).hexdigest() for one in written]
