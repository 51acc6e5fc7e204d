"""A template becomes a model, the model is trained, and a second training goes on from the first one's weights."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tests.e2e.pool import HERE, Pool

IMAGES = Path(__file__).parents[2] / "examples" / "templates" / "images"
COLOURS = {"dark": (30, 40, 30), "red": (220, 60, 50), "sky": (90, 150, 240)}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def paint(folder: Path, *, num: int) -> None:
    """Write pictures of one colour each, a little different from each other: CLASS/NUMBER.png."""
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for i in range(num):
            shade = tuple(min(255, value + 3 * i) for value in colour)
            Image.new("RGB", (12, 12), shade).save(folder / name / f"{i}.png")


def network() -> Any:
    """Return the network of the template, imported without anything of Pliant."""
    spec = importlib.util.spec_from_file_location("network", IMAGES / "network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_network(len(COLOURS), size=16, width=8)


def share_right(model: Any, folder: Path) -> float:
    """Return how many pictures a network tells right, of all."""
    right = []
    for label, name in enumerate(sorted(COLOURS)):
        for path in (folder / name).iterdir():
            with Image.open(path) as picture:
                pixels = torch.tensor(list(picture.resize((16, 16)).tobytes()), dtype=torch.float32)
            outputs = model(pixels.reshape(1, 16, 16, 3).permute(0, 3, 1, 2) / 127.5 - 1)
            right.append(int(outputs.argmax()) == label)
    return sum(right) / len(right)


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Return how far apart two state_dicts are: the largest difference of a value."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def answer(pool: Pool, *args: str) -> Any:
    """Run one command and return what it answers."""
    return json.loads(pool.cli(*args, "--json"))


def test_a_template_becomes_a_model_that_is_trained_and_goes_on(pool: Pool, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    paint(pictures / "train", num=8)
    paint(pictures / "test", num=4)

    def told(*args: str) -> Any:
        return answer(pool, *args)

    told("data", "add", str(pictures), "--kind", "images", "--name", "colours")
    assert told("templates", "add", str(IMAGES))["engines"] == ["elastic", "single"]
    numbers = ("optimizer=adam", "learning_rate=0.01", "batch_size=12", "epochs=6", "size=16", "width=8")
    sets = [part for number in numbers for part in ("--set", number)]
    told("models", "add", "colours", "--template", "images", "--dataset", "colours", "--max", "2", *sets)

    first = told("train", "colours", "--name", "first", "--wait")
    assert (first["state"], first["has_weights"], first["progress"]["epoch"]) == ("completed", True, 6)
    assert first["dataset_checksum"] == told("data", "show", "colours")["content"]["checksum"] != ""
    pool.cli("trainings", "colours", "first", "--weights", str(tmp_path / "first.pt"), "--code", str(tmp_path / "ran"))
    learned = torch.load(tmp_path / "first.pt", weights_only=True)
    model = network()
    model.load_state_dict(learned)
    assert share_right(model, pictures / "test") == 1.0
    assert (tmp_path / "ran" / "main.py").read_bytes() == (IMAGES / "main.py").read_bytes()
    assert "optimizer=Adam\n" in (tmp_path / "ran" / "ps.conf").read_text()
    with pool.client() as client:
        names = {point.name for point in client.metrics(first["job_id"]).points}
    assert {"loss", "test_accuracy"} <= names

    still = ("optimizer=SGD", "learning_rate=1e-9", "epochs=1")
    slow = [part for number in still for part in ("--set", number)]
    second = told("train", "colours", "--name", "second", "--weights", "first", *slow, "--wait")
    assert second["state"] == "completed"
    assert second["weights_from"]["source"] == "colours/first"
    pool.cli("trainings", "colours", "second", "--weights", str(tmp_path / "second.pt"))
    warm = torch.load(tmp_path / "second.pt", weights_only=True)
    torch.manual_seed(1)
    assert distance(warm, learned) < 1e-6, "a step that small stays where it began"
    assert distance(warm, network().state_dict()) > 1e-2, "and that is not where the script's own weights are"

    told("models", "remove", "colours")
    told("templates", "remove", "images")
    assert [one["name"] for one in told("trainings", "colours")["trainings"]] == ["first", "second"]
    assert told("trainings", "colours", "first")["settings"] == first["settings"]


def lay_plane(folder: Path) -> Path:
    """Write a template whose code is an ordinary script for torchrun."""
    folder.mkdir()
    shutil.copy(HERE / "plane.py", folder / "main.py")
    lines = ('name = "plane"', 'framework = "PyTorch"', 'main_file = "main.py"', 'engines = ["distributed"]', "")
    (folder / "template.toml").write_text("\n".join(lines))
    return folder


def test_a_distributed_model_is_trained_by_its_processes_and_goes_on(pool: Pool, tmp_path: Path) -> None:
    points = [(a / 10, b / 5) for a in range(-10, 10) for b in range(-5, 5)]
    rows = [f"{a},{b},{3 * a - 2 * b + 1}\n" for a, b in points]
    (tmp_path / "points.csv").write_text("a,b,y\n" + "".join(rows))
    answer(pool, "data", "add", str(tmp_path / "points.csv"), "--name", "points")
    answer(pool, "templates", "add", str(lay_plane(tmp_path / "plane")))
    sets = ("--set", "learning_rate=0.2", "--set", "batch_size=20", "--set", "epochs=20")
    model = answer(pool, "models", "add", "plane", "--template", "plane", "--dataset", "points", "--max", "2", *sets)
    assert (model["settings"]["engine"], model["settings"]["max_workers"]) == ("distributed", 2)

    first = answer(pool, "train", "plane", "--name", "first", "--wait")

    assert (first["state"], first["has_weights"]) == ("completed", True), first
    with pool.client() as client:
        detail = client.job(first["job_id"])
        assert (detail.job.spec.fixed, detail.job.min_tasks, detail.job.max_tasks) == (True, 2, 2)
        assert [task.exit_code for task in detail.tasks] == [0, 0]
        said = [[*client.read_log(first["job_id"], task.id, "stdout")] for task in detail.tasks]
    assert said == [[f"rank {rank} of 2: distributed, 80 rows"] for rank in (0, 1)]
    learned = torch.nn.Linear(2, 1)
    pool.cli("trainings", "plane", "first", "--weights", str(tmp_path / "first.pt"))
    learned.load_state_dict(torch.load(tmp_path / "first.pt", weights_only=True))
    assert learned(torch.tensor([[2.0, 5.0]])).item() == pytest.approx(3 * 2 - 2 * 5 + 1, abs=1e-3)

    still = ("--set", "learning_rate=1e-9", "--set", "epochs=1")
    second = answer(pool, "train", "plane", "--name", "second", "--weights", "first", *still, "--wait")
    assert second["state"] == "completed", second
    pool.cli("trainings", "plane", "second", "--weights", str(tmp_path / "second.pt"))
    warm = torch.load(tmp_path / "second.pt", weights_only=True)
    assert distance(warm, learned.state_dict()) < 1e-6, "a step that small stays where it began"
