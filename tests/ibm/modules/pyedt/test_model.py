"""`FabricModel` from outside, alone and as one of several tasks."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.world import World
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from pliant.core.errors import InvalidInput
from pliant.core.job import TaskId
from pliant.ibm.modules.callbacks import Callback, LoggerCallback
from pliant.ibm.modules.pyedt.model import FabricModel
from pliant.train.context import TRAIN_CONTEXT, standalone_context
from pliant.train.seeds import mix

NUM_TRAIN, NUM_TEST = 100, 20
LEARNING_RATE = 0.5
FACTOR = 0.9


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RESUME_WEIGHT_PATH", "TRAINING_ID", "DLI_EXECID", "LOG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    monkeypatch.setenv("PLIANT_VIRTUAL_WORKERS", "1")


def get_datasets() -> tuple[TensorDataset, TensorDataset]:
    x = torch.randn(NUM_TRAIN + NUM_TEST, 6, generator=torch.Generator().manual_seed(1))
    y = (x.sum(1) > 0).long()
    return TensorDataset(x[:NUM_TRAIN], y[:NUM_TRAIN]), TensorDataset(x[NUM_TRAIN:], y[NUM_TRAIN:])


def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(6, 2)
    with torch.no_grad():
        model.weight.copy_(torch.linspace(-0.5, 0.5, 12).reshape(2, 6))
        model.bias.zero_()
    return model, torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.5)


def fabric(**keywords: Any) -> FabricModel:
    model, optimizer = build()
    return FabricModel(model, get_datasets, cross_entropy, optimizer, **keywords)


def weight(of: FabricModel) -> torch.Tensor:
    return of.model.state_dict()["weight"].detach().clone()  # type: ignore[no-any-return]


def own_step(model: Any, data: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
    inputs, labels = data
    optimizer = model.get_optimizer()
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = model.get_loss_function()(outputs, labels)
    loss.backward()
    return eva(outputs, labels), loss


class Driver(LoggerCallback):
    """Records what the older form gets; like IBM's samples it does not call `__init__` of its base."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_train_begin(self) -> None:
        self.heard.append("begin")

    def on_train_end(self) -> None:
        self.heard.append("end")

    def log_train_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.heard.append(("train", completed_batch, worker))
        assert 0 <= acc <= 100

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.heard.append(("test", completed_batch, worker))


class Worker(LoggerCallback):
    """Records what the newer form gets."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def log_train_metrics(self, metrics: dict[str, float], iteration: int, epoch: int, workers: int) -> None:
        self.heard.append((sorted(metrics), iteration, epoch, workers))

    def log_test_metrics(self, metrics: dict[str, float], iteration: int, epoch: int) -> None:
        self.heard.append((sorted(metrics), iteration, epoch))


class Lowering(Callback):
    """Lowers the learning rate where every epoch but the first begins, and again where the first ends."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, int]] = []

    def on_epoch_begin(self, epoch: int) -> None:
        self.heard.append(("begin", epoch))
        if epoch != 0:
            self._lower()

    def on_epoch_end(self, epoch: int, save_model: bool = False) -> None:
        self.heard.append(("end", epoch))
        if epoch == 0:
            self._lower()

    @property
    def learning_rate(self) -> float:
        rate: float = self.params["optimizer"].param_groups[0]["lr"]
        return rate

    def _lower(self) -> None:
        for group in self.params["optimizer"].param_groups:
            group["lr"] *= FACTOR


def test_unknown_keywords_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        TypeError, match=r"FabricModel got unknown keyword\(s\) logger; it takes model, datasets_function"
    ):
        fabric(logger=None)
    with pytest.raises(TypeError, match=r"FabricModel\.train got unknown keyword\(s\) epochs; it takes epoch_number"):
        fabric().train(1, 10, epochs=3)


def test_positions_are_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    fabric().train(2, 5, 4, 0, 2, 0)

    told = capsys.readouterr().out
    assert "Total iterations: 40" in told  # 5 steps of 20 samples, 4 virtual workers, 2 epochs
    assert told.count("tag test_loss") == 1


def test_the_global_batch_is_batch_size_times_engines_however_it_is_said() -> None:
    by_engines, by_effective, untrained = fabric(), fabric(), fabric()
    by_engines.train(2, 5, engines_number=4)
    by_effective.train(2, 20, effective_batch_size=20)

    assert torch.allclose(weight(by_engines), weight(by_effective), atol=1e-6)
    assert not torch.allclose(weight(by_engines), weight(untrained), atol=1e-3)


@pytest.mark.parametrize(("batch", "engines", "same"), [(30, 8, (30, 3)), (200, 4, (100, 1))])
def test_a_small_data_set_is_trained_as_with_the_engines_that_it_can_feed(
    batch: int, engines: int, same: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    fitted, asked = fabric(), fabric()
    fitted.train(2, batch, engines)
    told = capsys.readouterr().out
    asked.train(2, *same)

    assert torch.equal(weight(fitted), weight(asked))
    assert f"the data set has {NUM_TRAIN} samples, fewer than a global batch of {batch * engines}" in told


def test_the_jobs_virtual_workers_count_where_the_script_says_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = standalone_context()
    context.virtual_workers = 5
    token = TRAIN_CONTEXT.set(context)

    fabric().train(1, 10)

    TRAIN_CONTEXT.reset(token)

    assert "Total iterations: 10" in capsys.readouterr().out  # 2 steps of 50 samples, 5 virtual workers


def test_a_job_without_a_number_has_an_engine_for_each_task(capsys: pytest.CaptureFixture[str]) -> None:
    context = standalone_context()
    context.max_tasks = 10
    token = TRAIN_CONTEXT.set(context)

    fabric().train(1, 5)

    TRAIN_CONTEXT.reset(token)

    assert "Total iterations: 20" in capsys.readouterr().out  # 2 steps of 50 samples, 10 virtual workers


def test_a_scripts_own_step_trains_as_the_usual_one() -> None:
    usual, own = fabric(), fabric(fn_step_train=own_step)
    usual.train(3, 5, 4)
    own.train(3, 5, 4)

    assert torch.allclose(weight(usual), weight(own), atol=1e-6)


def test_loggers_and_callbacks_are_called_in_order() -> None:
    driver, worker, callback = Driver(), Worker(), Lowering()

    fabric(driver_logger=driver, worker_logger=worker, user_callback=[callback]).train(2, 25, 2)

    assert driver.heard == [
        "begin",
        ("train", 2, 0),
        ("train", 4, 0),
        ("test", 4, 0),
        ("train", 6, 0),
        ("train", 8, 0),
        ("test", 8, 0),
        "end",
    ]
    trained = ["accuracy", "loss"]
    assert worker.heard == [
        *((trained, iteration, 0, 1) for iteration in (1, 2, 3, 4)),
        (trained, 0, 0),
        *((trained, iteration, 1, 1) for iteration in (5, 6, 7, 8)),
        (trained, 0, 1),
    ]
    assert callback.heard == [("begin", 0), ("end", 0), ("begin", 1), ("end", 1)]
    assert callback.learning_rate == pytest.approx(LEARNING_RATE * FACTOR**2)
    assert callback.params["epochs"] == 2


def test_metrics_of_the_script_are_reported() -> None:
    worker = Worker()

    def half(outputs: torch.Tensor, labels: torch.Tensor) -> float:
        return 0.5

    fabric(worker_logger=worker, metrics=[half]).train(1, 50)

    assert worker.heard[0][0] == ["accuracy", "half", "loss"]


def test_validation_comes_every_so_many_epochs_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    fabric().train(5, 50, validation_freq=2)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines if "test_loss" in line] == [
        "Iteration 4",
        "Iteration 8",
        "Iteration 10",
    ]


def test_the_log_has_the_lines_that_readers_look_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_ID", "job-9")

    fabric(scale_up_function=lambda epoch, most: most).train(1, 50, worker_memory="16G")

    told = capsys.readouterr().out
    for part in [
        "scale_up_function is accepted and has no effect: the server decides",
        "worker_memory is accepted and has no effect",
        "Using pytorch backend.",
        "--------START TRAINING--------",
        "Iteration 1: tag train_accuracy, simple_value ",
        "job-9 completed epoch 0 in time ",
        "--------END TRAINING: completed 2 iterations in ",
    ]:
        assert told.count(part) == 1, part
    assert told.endswith("Job job-9 finishes with state FINISHED.\n")


def test_results_lie_where_ibms_do(tmp_path: Path) -> None:
    fabric().train(4, 50, checkpoint_freq=2)

    assert sorted(path.name for path in (tmp_path / "model" / "train").iterdir()) == [
        "model_epoch_2.pth",
        "model_epoch_2_optimizer_state.pth",
        "model_epoch_4.pth",
        "model_epoch_4_optimizer_state.pth",
        "model_epoch_final.pth",
        "model_epoch_final_optimizer_state.pth",
    ]


def test_first_weights_come_from_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fabric()
    first.train(1, 50)
    kept = weight(first)
    monkeypatch.setenv("RESUME_WEIGHT_PATH", str(tmp_path / "model"))
    monkeypatch.setenv("RESULT_DIR", str(tmp_path / "other"))
    model, optimizer = build()
    for group in optimizer.param_groups:
        group["lr"] = 0.0

    FabricModel(model, get_datasets, cross_entropy, optimizer).train(1, 50)

    assert torch.equal(model.state_dict()["weight"], kept)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: None, "returned NoneType; return two data sets"),
        (lambda: get_datasets()[0], "returned TensorDataset; return two data sets"),
        (lambda: (None, None), "returned no training data"),
        (lambda: (iter([]), None), "has no length; return map-style data sets"),
    ],
)
def test_other_data_sets_are_refused(given: Callable[[], Any], message: str) -> None:
    model, optimizer = build()

    with pytest.raises(InvalidInput, match=message):
        FabricModel(model, given, cross_entropy, optimizer).train(1, 10)


def test_no_test_set_means_no_validation(capsys: pytest.CaptureFixture[str]) -> None:
    model, optimizer = build()

    FabricModel(model, lambda: (get_datasets()[0], None), cross_entropy, optimizer).train(1, 50)

    assert "test_" not in capsys.readouterr().out


def test_an_export_that_cannot_be_made_is_told_and_the_training_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    fabric(enable_onnx=True).train(1, 50)

    told = capsys.readouterr().out
    assert "enable_onnx: " in told
    assert "finishes with state FINISHED" in told


def test_the_model_can_be_downloaded(tmp_path: Path) -> None:
    edt = fabric()
    edt.train(1, 50)

    assert edt.download(str(tmp_path / "home")) == str(tmp_path / "home" / "local.zip")


NUM_EPOCHS = 30


def elastic(world: World, task_id: TaskId, *, made: dict[TaskId, Lowering], hurry: threading.Event) -> None:
    """Train in one of several tasks; until it has to hurry each part takes a moment, so that changes fall between."""
    model, optimizer = build()
    made[task_id] = callback = Lowering()

    def slow(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        world.maybe_crash(task_id)
        hurry.wait(0.03)
        return cross_entropy(outputs, labels)

    FabricModel(model, get_datasets, slow, optimizer, user_callback=[callback]).train(NUM_EPOCHS, 5, 4)


def test_no_history_of_sizes_and_losses_changes_the_learning_rate_or_the_model(tmp_path: Path) -> None:
    callbacks: dict[TaskId, Lowering] = {}
    hurry = threading.Event()
    world = World(script=partial(elastic, made=callbacks, hurry=hurry), result_dir=tmp_path / "job", virtual_workers=4)
    for size in (1, 3):
        world.resize(size)
        world.wait_for_size(size)
    world.wait(lambda: any(("begin", 1) in one.heard for one in callbacks.values()), "the second epoch begins")
    for size in (2, 4):
        world.resize(size)
        world.wait_for_size(size)
    world.kill(world.live()[0])
    world.wait_for_size(3)
    world.resize(4)
    world.wait_for_size(4)
    hurry.set()
    world.wait_for_end()

    lowering = Lowering()
    alone = fabric(user_callback=[lowering])
    alone.train(NUM_EPOCHS, 5, 4)
    weights = torch.load(tmp_path / "job" / "model" / "model.pt", weights_only=True)
    assert torch.allclose(weights["weight"], weight(alone), atol=1e-5)
    finished = [callback for callback in callbacks.values() if ("end", NUM_EPOCHS - 1) in callback.heard]
    assert {callback.learning_rate for callback in finished} == {lowering.learning_rate}
    newcomers = [callback for callback in finished if ("begin", 0) not in callback.heard]
    assert newcomers, "nobody joined while the training ran"
    assert all(kind == "begin" for kind, _ in (callback.heard[0] for callback in newcomers))


def test_only_the_leader_tells_of_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hurry = threading.Event()
    world = World(script=partial(elastic, made={}, hurry=hurry), result_dir=tmp_path / "job", virtual_workers=4)
    world.resize(3)
    world.wait_for_size(3)
    hurry.set()
    world.wait_for_end()

    told = capsys.readouterr().out
    assert told.count("finishes with state FINISHED") == 1
    assert told.count(f"completed epoch {NUM_EPOCHS - 1} in time") == 1


# -- what IBM's product does not have ---------------------------------------------------------------------------------


def test_several_optimizers_are_stepped_and_their_states_saved_by_name(tmp_path: Path) -> None:
    model, _ = build()
    weights, biases = model.parameters()
    optimizers = {"weight": torch.optim.SGD([weights], lr=0.5), "bias": torch.optim.Adam([biases], lr=0.5)}
    seen = []

    def step(model: Any, data: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
        seen.append(model.get_optimizer())
        for one in model.get_optimizer().values():
            one.zero_grad()
        loss = model.get_loss_function()(model(data[0]), data[1])
        loss.backward()
        return None, loss

    before = [parameter.detach().clone() for parameter in model.parameters()]
    FabricModel(model, get_datasets, cross_entropy, optimizers, fn_step_train=step).train(1, 25, 2)

    assert not any(map(torch.equal, model.parameters(), before))
    assert all(one is optimizers for one in seen)
    folder = tmp_path / "model" / "train"
    assert set(torch.load(folder / "model_epoch_final_optimizer_state.pth", weights_only=True)) == {"weight", "bias"}


def reference(num_epochs: int, batch_size: int, after_backward: Callable[[Any, Any], None]) -> torch.Tensor:
    """Train in a plain loop over the batches as a `FabricModel` of one virtual worker takes them."""
    model, optimizer = build()
    data = get_datasets()[0]
    for epoch in range(num_epochs):
        order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(mix(0, epoch))).tolist()
        for start in range(0, NUM_TRAIN, batch_size):
            x, y = data[order[start : start + batch_size]]
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            after_backward(model, optimizer)
    return model.state_dict()["weight"].detach().clone()  # type: ignore[no-any-return]


def test_the_gradient_of_the_global_batch_is_clipped() -> None:
    def clip(model: Any, optimizer: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.02)
        optimizer.step()

    clipped = fabric(clip_norm=0.05, clip_value=0.02)
    clipped.train(2, 50)

    assert torch.equal(weight(clipped), reference(2, 50, clip))


def test_schedulers_step_by_steps_and_by_epochs() -> None:
    model, optimizer = build()
    by_step = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    by_epoch = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)

    FabricModel(model, get_datasets, cross_entropy, optimizer, schedulers=by_step, epoch_schedulers=[by_epoch]).train(
        3, 50
    )

    assert optimizer.param_groups[0]["lr"] == pytest.approx(LEARNING_RATE * 0.5**6 * 0.1**3)


@pytest.mark.parametrize("has_test_set", [True, False])
def test_a_scheduler_that_needs_a_value_gets_the_loss(has_test_set: bool) -> None:
    model, optimizer = build()
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0, factor=0.5)
    train_set, test_set = get_datasets()

    FabricModel(
        model,
        lambda: (train_set, test_set if has_test_set else None),
        cross_entropy,
        optimizer,
        epoch_schedulers=[plateau],
    ).train(4, 50, validation_freq=2)

    assert plateau.last_epoch == (2 if has_test_set else 4)
    assert optimizer.param_groups[0]["lr"] < LEARNING_RATE


def scaled_step(model: Any, data: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
    """A step as scripts with mixed precision write it."""
    inputs, labels = data
    model.get_optimizer().zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs)
        loss = model.get_loss_function()(outputs, labels)
    model.get_scaler().scale(loss).backward()
    return eva(outputs, labels), loss


def test_a_scaler_serves_the_usual_step_and_a_scripts_own() -> None:
    scaler, other = (torch.amp.GradScaler("cpu", init_scale=8.0) for _ in range(2))
    usual = fabric(scaler=scaler, autocast=torch.float16)
    own = fabric(scaler=other, fn_step_train=scaled_step)
    plain = fabric()
    for one in (usual, own, plain):
        one.train(2, 25, 2)

    torch.testing.assert_close(weight(usual), weight(own), rtol=0, atol=1e-3)
    torch.testing.assert_close(weight(usual), weight(plain), rtol=0, atol=0.02)
    assert not torch.equal(weight(usual), weight(plain))


def test_a_local_batch_may_be_computed_in_pieces() -> None:
    whole, in_pieces = fabric(), fabric()
    sizes: list[int] = []
    in_pieces.model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    whole.train(2, 25, 2)
    in_pieces.train(2, 25, 2, accumulate=5)

    torch.testing.assert_close(weight(whole), weight(in_pieces))
    assert max(sizes[: NUM_TRAIN // 5]) == 5


class Stepping(Callback):
    """Keeps a scheduler of torch's, as scripts do that know no other way."""

    def on_train_begin(self) -> None:
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.params["optimizer"], 2, 0.5)

    def on_epoch_end(self, epoch: int) -> None:
        self.scheduler.step()


def test_a_newcomer_agrees_on_validations_and_on_the_schedulers_in_callbacks(tmp_path: Path) -> None:
    rates: dict[TaskId, float] = {}
    seen: dict[TaskId, list[tuple[int, float]]] = {}
    hurry = threading.Event()

    class Noting(LoggerCallback):
        def __init__(self, name: TaskId) -> None:
            self.name = name

        def log_train_metrics(self, metrics: Any, iteration: int, epoch: int, workers: int) -> None:
            pass

        def log_test_metrics(self, metrics: Any, iteration: int, epoch: int) -> None:
            seen.setdefault(self.name, []).append((epoch, metrics["loss"]))

    def slowly(*_: Any) -> None:
        hurry.wait(0.03)  # changes of the membership fall between steps

    def script(world: World, task_id: TaskId) -> None:
        model, optimizer = build()
        model.register_forward_pre_hook(slowly)
        FabricModel(
            model, get_datasets, cross_entropy, optimizer, worker_logger=Noting(task_id), user_callback=Stepping()
        ).train(30, 5, 4)
        rates[task_id] = optimizer.param_groups[0]["lr"]

    world = World(script, tmp_path, checkpoint_freq=0)
    world.resize(1)
    world.wait_for_size(1)
    world.wait(lambda: bool(seen), "an epoch is validated")
    world.resize(3)
    world.wait_for_size(3)
    hurry.set()
    world.wait_for_end()

    assert list(rates.values()) == [pytest.approx(LEARNING_RATE * 0.5**15)] * 3
    longest = max(seen.values(), key=len)
    assert [epoch for epoch, _ in longest] == list(range(30))
    assert all(mine == longest[-len(mine) :] for mine in seen.values())
