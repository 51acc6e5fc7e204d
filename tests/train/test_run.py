"""`Run` alone: the same numbers as a plain loop, and a clear word about every wrong use."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from pliant.core.job import JobId, Mode, TaskId
from pliant.core.link import EpochFinished, Finished, Form, FromTask, Report
from pliant.train import Run, TrainingError
from pliant.train.context import TRAIN_CONTEXT, TrainContext
from pliant.train.group.membership import TaskMembership

NUM_SAMPLES = 50
ME = TaskId("job-1.1")


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FromTask]]:
    """Surround the script as a lone task of a job; return what it tells."""
    messages: list[FromTask] = []
    membership = TaskMembership(
        job_id=JobId("job-1"), task_id=ME, pid=1, host="127.0.0.1", key=b"the key of job-1", send=messages.append
    )
    membership.deliver(Form(generation=1, members=(ME,), host="", port=0))
    context = TrainContext(membership=membership, clock=time.monotonic, now=time.time, virtual_workers=1)
    token = TRAIN_CONTEXT.set(context)
    yield messages
    for clean_up in context.cleanups:
        clean_up()
    TRAIN_CONTEXT.reset(token)


def data(num_samples: int = NUM_SAMPLES) -> TensorDataset:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(num_samples, 6, generator=generator)
    return TensorDataset(x, (x.sum(dim=1) > 0).long())


def build(dropout: float = 0.0) -> tuple[torch.nn.Sequential, torch.optim.Optimizer]:
    torch.manual_seed(2)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.Dropout(dropout), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(x), y)


def train(num_epochs: int = 2, **options: Any) -> tuple[torch.nn.Module, Run, list[torch.Tensor]]:
    """Train with `Run`; return the model, the run and the first feature of all samples in the order of their use."""
    model, optimizer = build()
    run = Run(model, optimizer, data(), **{"batch_size": 16, **options})
    used: list[torch.Tensor] = []
    for _ in run.epochs(num_epochs):
        for x, y in run:
            used.append(x[:, 0].clone())
            run.step(loss_of(model, x, y))
    return model, run, used


def same(model: torch.nn.Module, other: torch.nn.Module, *, rtol: float, atol: float) -> None:
    torch.testing.assert_close(dict(model.named_parameters()), dict(other.named_parameters()), rtol=rtol, atol=atol)


# -- the same as a plain loop -----------------------------------------------------------------------------------------


def test_one_virtual_worker_gives_bit_for_bit_what_a_plain_loop_gives() -> None:
    trained, run, used = train(num_epochs=3, batch_size=16)
    model, optimizer = build()
    x, y = data().tensors
    place_of = {value: place for place, value in enumerate(x[:, 0].tolist())}
    losses = []
    for batch in used:
        indices = [place_of[value] for value in batch.tolist()]
        optimizer.zero_grad()
        loss = loss_of(model, x[indices], y[indices])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())

    same(trained, model, rtol=0, atol=0)
    assert [len(batch) for batch in used] == [16, 16, 16, 2] * 3, "the last batch of an epoch is what is left"
    assert run.last == {"loss": pytest.approx(losses[-1])}
    for epoch in range(3):
        assert sorted(torch.cat(used[4 * epoch : 4 * epoch + 4]).tolist()) == sorted(x[:, 0].tolist())
    assert not torch.equal(torch.cat(used[:4]), torch.cat(used[4:8])), "every epoch has an order of its own"


@pytest.mark.parametrize("virtual_workers", [2, 3, 8, 16])
def test_number_of_virtual_workers_changes_nothing_but_the_rounding(virtual_workers: int) -> None:
    expected, _, _ = train()
    trained, _, used = train_in_new_surroundings(virtual_workers=virtual_workers)

    same(trained, expected, rtol=1e-4, atol=1e-6)
    assert max(len(batch) for batch in used) == -(-16 // virtual_workers)


def train_in_new_surroundings(**options: Any) -> tuple[torch.nn.Module, Run, list[torch.Tensor]]:
    TRAIN_CONTEXT.set(lone())
    return train(**options)


def lone() -> TrainContext:
    membership = TaskMembership(
        job_id=JobId("job-1"), task_id=ME, pid=1, host="127.0.0.1", key=b"the key of job-1", send=lambda _message: None
    )
    membership.deliver(Form(generation=1, members=(ME,), host="", port=0))
    return TrainContext(membership=membership, clock=time.monotonic, now=time.time, virtual_workers=1)


@pytest.mark.parametrize(
    ("job", "script", "parts", "most"),
    [
        ({"max_tasks": 4}, {}, 4, 4),
        ({"max_tasks": 1}, {}, 1, 1),
        ({"max_tasks": 4}, {"virtual_workers": 2}, 2, 2),
        ({"max_tasks": 4}, {"mode": "fast"}, 4, 16),
        ({"max_tasks": 4}, {"mode": "fast", "virtual_workers": 2}, 2, 2),
        ({"max_tasks": 4, "virtual_workers": 8}, {"mode": "fast"}, 8, 8),
    ],
)
def test_parts_are_chosen_where_nobody_asks_and_any_size_can_share_a_batch_in_fast_mode(
    job: dict[str, Any], script: dict[str, Any], parts: int, most: int
) -> None:
    TRAIN_CONTEXT.set(replace(lone(), **{"virtual_workers": None} | job))
    _, run, _ = train(num_epochs=1, **script)

    assert (run.virtual_workers, run.plan.max_workers) == (parts, most)


def test_order_without_shuffling_is_the_data_set_s() -> None:
    _, _, used = train(num_epochs=1, shuffle=False, virtual_workers=4)

    assert torch.equal(torch.cat(used), data().tensors[0][:, 0])


def test_random_numbers_of_a_step_do_not_depend_on_what_came_before() -> None:
    weights = []
    for noise in (0, 3):
        TRAIN_CONTEXT.set(lone())
        model, optimizer = build(dropout=0.5)
        run = Run(model, optimizer, data(), batch_size=16, virtual_workers=2, seed=4)
        for _ in run.epochs(1):
            for x, y in run:
                run.step(loss_of(model, x, y))
                torch.rand(noise + 1)
        weights.append(model)

    same(weights[0], weights[1], rtol=0, atol=0)


def test_take_gives_what_step_gives() -> None:
    expected, _, _ = train(virtual_workers=4)
    TRAIN_CONTEXT.set(lone())
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16, virtual_workers=4)
    for _ in run.epochs(2):
        for x, y in run:
            loss = loss_of(model, x, y)
            loss.backward()  # type: ignore[no-untyped-call]
            run.take(loss.item())

    same(model, expected, rtol=1e-5, atol=1e-7)


def test_metrics_are_means_over_the_global_batch() -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16, virtual_workers=5, shuffle=False)
    x_all, y_all = data().tensors
    for _ in run.epochs(1):
        for x, y in run:
            run.step(loss_of(model, x, y), ones=y.float().mean(), first=x[:, 0].mean().item())
        last = slice(48, 50)
        assert run.last["ones"] == pytest.approx(y_all[last].float().mean().item())
        assert run.last["first"] == pytest.approx(x_all[last, 0].mean().item(), rel=1e-5)


def test_progress_is_told_to_the_server(heard: list[FromTask]) -> None:
    _, run, _ = train(num_epochs=2)

    assert [(m.epoch, m.step, m.samples) for m in heard if isinstance(m, EpochFinished)] == [(0, 4, 50), (1, 8, 50)]
    reports = [m.progress for m in heard if isinstance(m, Report)]
    assert (reports[-1].epoch, reports[-1].step, reports[-1].num_steps, reports[-1].samples) == (2, 8, 8, 100)
    (finished,) = [m for m in heard if isinstance(m, Finished)]
    assert (finished.step, finished.digest) == (8, run.digest())
    assert finished.progress is not None
    assert (finished.progress.step, finished.progress.loss) == (8, run.last["loss"])


def test_loop_over_epochs_may_be_left_early(heard: list[FromTask]) -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16)
    seen = []
    for epoch in run.epochs(10):
        seen.append(epoch)
        for x, y in run:
            run.step(loss_of(model, x, y))
        if epoch == 1:
            break
    for close in TRAIN_CONTEXT.get().closers:
        close()

    assert seen == [0, 1]
    assert run.num_steps_done == 8
    last = heard[-1]
    assert isinstance(last, Finished)
    assert (last.step, last.digest) == (8, run.digest())


# -- wrong use --------------------------------------------------------------------------------------------------------


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(TrainingError) as caught:
        act()
    return str(caught.value)


def run_of(dataset: Any = None, **options: Any) -> Run:
    model, optimizer = build()
    return Run(model, optimizer, dataset if dataset is not None else data(), **{"batch_size": 16, **options})


def test_data_set_smaller_than_a_global_batch_is_refused() -> None:
    assert refused(lambda: run_of(data(15))) == (
        "the data set has 15 samples, fewer than one global batch of 16; "
        "lower batch_size to at most 15 or bring more samples"
    )


def test_batch_smaller_than_the_virtual_workers_is_refused() -> None:
    assert refused(lambda: run_of(virtual_workers=17)) == (
        "a global batch of 16 samples cannot be cut into 17 virtual workers; "
        "raise batch_size to at least 17 or lower virtual_workers"
    )


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_batch_smaller_than_the_job_s_virtual_workers_is_cut_into_samples(mode: Mode) -> None:
    TRAIN_CONTEXT.get().virtual_workers = 8
    _, run, used = train(num_epochs=1, batch_size=3, mode=mode)

    assert (run.virtual_workers, run.num_steps_done) == (3, 17)
    assert {len(part) for part in used} == ({1} if mode == "exact" else {3, 2})


@pytest.mark.parametrize("batch_size", [0, -3])
def test_batch_of_nothing_is_refused(batch_size: int) -> None:
    assert refused(lambda: run_of(batch_size=batch_size)) == (
        f"batch_size is {batch_size}; it is the number of samples per step, at least 1"
    )


def test_model_without_trainable_parameters_is_refused() -> None:
    model, optimizer = build()
    model.requires_grad_(False)

    assert refused(lambda: Run(model, optimizer, data(), batch_size=16)) == (
        "no parameter of the model requires a gradient; there is nothing to train"
    )


def test_optimizer_with_foreign_parameters_is_refused() -> None:
    model, _ = build()
    head = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)

    assert refused(lambda: Run(model, optimizer, data(), batch_size=16)) == (
        "the optimizers train 2 parameters that the model does not hold, so other tasks would "
        "not get them; put every trained parameter into one torch.nn.Module and give that as the model"
    )


def loop(body: Callable[[Run, torch.nn.Module, Any, Any], None], **options: Any) -> Callable[[], None]:
    """Return a training whose inner loop does this."""

    def act() -> None:
        model, optimizer = build()
        run = Run(model, optimizer, data(), **{"batch_size": 16, "virtual_workers": 2, **options})
        for _ in run.epochs(2):
            for x, y in run:
                body(run, model, x, y)

    return act


def test_step_called_twice_is_refused() -> None:
    def body(run: Run, model: torch.nn.Module, x: Any, y: Any) -> None:
        run.step(loss_of(model, x, y))
        run.step(loss_of(model, x, y))

    assert refused(loop(body)) == "step was called twice for one batch, or outside of the loop over the run's batches"


def test_step_before_the_loop_is_refused() -> None:
    run = run_of()

    assert refused(lambda: run.step(torch.zeros((), requires_grad=True))).startswith("step was called twice")


def test_forgotten_step_is_refused() -> None:
    assert refused(loop(lambda *_: None)) == "a batch was not trained on: call run.step(loss) once for every batch"


def test_forgotten_step_in_the_last_batch_is_refused() -> None:
    def body(run: Run, model: torch.nn.Module, x: Any, y: Any) -> None:
        if run.step_in_epoch < 3:
            run.step(loss_of(model, x, y))

    assert refused(loop(body)) == "a batch was not trained on: call run.step(loss) once for every batch"


def test_inner_loop_left_early_is_refused() -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16)

    def act() -> None:
        for _ in run.epochs(2):
            for x, y in run:
                run.step(loss_of(model, x, y))
                break

    assert refused(act) == (
        "epoch 0 was left after step 1 of 4; iterate the run to its end in every epoch "
        "(break out of the loop over epochs to stop early)"
    )


def test_other_metrics_than_before_are_refused() -> None:
    def body(run: Run, model: torch.nn.Module, x: Any, y: Any) -> None:
        metrics: dict[str, Any] = {"a": 1.0} if run.num_steps_done == 0 else {"b": 1.0}
        run.step(loss_of(model, x, y), **metrics)

    assert refused(loop(body)) == "step got the metrics ('b',), and ('a',) before; give the same always"


def test_more_metrics_than_travel_are_refused() -> None:
    def body(run: Run, model: torch.nn.Module, x: Any, y: Any) -> None:
        metrics: dict[str, Any] = {f"m{number}": 1.0 for number in range(17)}
        run.step(loss_of(model, x, y), **metrics)

    assert refused(loop(body)) == "step got 17 metrics; at most 16 travel with a step"


def test_second_training_with_one_run_is_refused() -> None:
    _, run, _ = train(num_epochs=1)

    assert refused(lambda: next(iter(run.epochs(1)))) == "epochs() was called before; one Run is one training"


def test_iterating_outside_of_epochs_is_refused() -> None:
    run = run_of()

    assert refused(lambda: next(iter(run))) == "iterate the run inside `for epoch in run.epochs(num_epochs):`"


def test_log_before_training_is_refused() -> None:
    run = run_of()

    assert refused(lambda: run.log(accuracy=1.0)).startswith("log() before epochs()")


class Items(Dataset[Any]):
    """Counts how it is read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        x, y = data()[index]
        return x, y


def test_only_the_samples_of_the_step_are_read() -> None:
    items = Items()
    model, optimizer = build()
    run = Run(model, optimizer, items, batch_size=16, virtual_workers=4)
    for _ in run.epochs(1):
        for x, y in run:
            run.step(loss_of(model, x, y))

    assert sorted(items.read) == list(range(NUM_SAMPLES))


# -- what integrations of other libraries lean on ---------------------------------------------------------------------


def test_after_step_finds_the_values_of_its_own_step() -> None:
    model, optimizer = build()
    told: list[float] = []
    run = Run(model, optimizer, data(), batch_size=16, after_step=lambda: told.append(run.last["loss"]))
    losses = []
    for _ in run.epochs(1):
        for x, y in run:
            loss = loss_of(model, x, y)
            run.step(loss)
            losses.append(loss.item())
    assert told == pytest.approx(losses)


def test_training_that_is_left_early_can_be_finished_at_once(heard: list[FromTask]) -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16)
    with pytest.raises(TrainingError, match=r"finish\(\) before epochs\(\)"):
        run.finish()
    run.note_work()  # there is nothing to tell yet
    for _ in run.epochs(3):
        for x, y in run:
            if run.num_steps_done == 2:
                break
            run.step(loss_of(model, x, y))
        break
    run.finish()
    [finished] = [message for message in heard if isinstance(message, Finished)]
    assert (finished.step, finished.digest) == (2, run.digest())


def test_note_work_tells_that_the_training_goes_on_without_a_speed(heard: list[FromTask]) -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=16)
    for _ in run.epochs(1):
        run.note_work()
        [report] = [message for message in heard if isinstance(message, Report)]
        assert report.progress.samples_per_s == 0.0
        break
