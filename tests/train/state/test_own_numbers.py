"""Who begins from another training's state trains with the numbers of its own script, and goes on in its schedule."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, SequentialLR, StepLR

from pliant.core.link import FromTask
from pliant.train.errors import TrainingError
from pliant.train.state import checkpoint
from pliant.train.state.claim import TrainingClaim
from pliant.train.state.results import Results
from pliant.train.state.shared import SharedState
from pliant.train.state.snapshot import SnapshotBuffer


def built(optimizer: Any, schedule: Any = None, **numbers: Any) -> SharedState:
    """Return the state of a training as a script has built it."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    groups = [{"params": [model.weight]}, {"params": [model.bias], "weight_decay": 0.0}]
    made = optimizer(groups, **numbers)
    extras = {} if schedule is None else {"schedule": schedule(made)}
    return SharedState(
        model=model, optimizers={"": made}, extras=extras, identity={"seed": 1}, claim=TrainingClaim("exact", "here")
    )


def train(state: SharedState, num_steps: int) -> None:
    for step in range(num_steps):
        optimizer, model = state.optimizers[""], state.model
        optimizer.zero_grad()
        model(torch.full((4, 3), 1.0 + step)).square().mean().backward()
        optimizer.step()
        for extra in state.extras.values():
            extra.step()  # type: ignore[attr-defined]


def saved_in(folder: Path, state: SharedState, step: int) -> Path:
    checkpoint.save(folder, SnapshotBuffer().take(state.capture(step=step, epoch=0)), step=step)
    return folder


def results_of(root: Path, state: SharedState, origin: Path, *, own_numbers: bool = True) -> Results:
    heard: list[FromTask] = []
    return Results(
        folder=root / "result",
        state=state,
        send=heard.append,
        clock=lambda: 1.0,
        freq=0,
        save=None,
        resume_from=origin,
        own_numbers=own_numbers,
    )


def began(root: Path, child: SharedState, parent: SharedState, *, own_numbers: bool = True) -> SharedState:
    """Return a child that has begun from its parent's state."""
    results = results_of(root, child, saved_in(root / "origin", parent, 3), own_numbers=own_numbers)
    found = results.newest()
    results.close()
    assert found is not None
    child.load(found)
    return child


def group_of(state: SharedState, index: int = 0) -> dict[str, Any]:
    return {name: one for name, one in state.optimizers[""].param_groups[index].items() if name != "params"}


def test_without_a_schedule_all_plain_numbers_are_its_own(tmp_path: Path) -> None:
    parent = built(torch.optim.AdamW, lr=0.1, betas=(0.9, 0.99), weight_decay=0.3)
    train(parent, 3)
    fresh = group_of(built(torch.optim.AdamW, lr=0.02, betas=(0.8, 0.95), weight_decay=0.1))

    child = began(tmp_path, built(torch.optim.AdamW, lr=0.02, betas=(0.8, 0.95), weight_decay=0.1), parent)

    assert group_of(child) == fresh
    assert group_of(child, 1)["weight_decay"] == 0.0
    moments = [[state["exp_avg"] for state in one.optimizers[""].state.values()] for one in (parent, child)]
    torch.testing.assert_close(*moments, rtol=0, atol=0)
    torch.testing.assert_close(child.model.state_dict(), parent.model.state_dict(), rtol=0, atol=0)


def test_who_is_no_child_goes_on_with_the_numbers_that_were_saved(tmp_path: Path) -> None:
    parent = built(torch.optim.SGD, lr=0.1, momentum=0.9)
    train(parent, 3)

    other = began(tmp_path, built(torch.optim.SGD, lr=0.02, momentum=0.5), parent, own_numbers=False)

    assert (group_of(other)["lr"], group_of(other)["momentum"]) == (0.1, 0.9)


SCHEDULES = {
    "step": lambda optimizer: StepLR(optimizer, step_size=2, gamma=0.5),
    "cosine": lambda optimizer: CosineAnnealingLR(optimizer, T_max=9),
    "two": lambda optimizer: SequentialLR(
        optimizer, [LinearLR(optimizer, 0.1, total_iters=2), StepLR(optimizer, 2, 0.5)], milestones=[2]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_in_the_scale_of_its_own_learning_rate(name: str, tmp_path: Path) -> None:
    parent = built(torch.optim.SGD, SCHEDULES[name], lr=0.1, momentum=0.9)
    train(parent, 3)
    whole = built(torch.optim.SGD, SCHEDULES[name], lr=0.4, momentum=0.5)
    train(whole, 3)

    child = began(tmp_path, built(torch.optim.SGD, SCHEDULES[name], lr=0.4, momentum=0.5), parent)

    for _ in range(5):
        assert group_of(child) == {**group_of(whole), "lr": pytest.approx(group_of(whole)["lr"])}
        train(whole, 1)
        train(child, 1)


def test_a_cycle_has_its_own_ends(tmp_path: Path) -> None:
    def cycle(top: float) -> Any:
        return lambda optimizer: OneCycleLR(optimizer, max_lr=top, total_steps=20, base_momentum=0.7, max_momentum=0.9)

    parent, whole = (built(torch.optim.SGD, cycle(top), lr=0.1, momentum=0.9) for top in (1.0, 4.0))
    for one in (parent, whole):
        train(one, 3)

    child = began(tmp_path, built(torch.optim.SGD, cycle(4.0), lr=0.1, momentum=0.9), parent)
    for one in (child, whole):
        train(one, 1)

    assert group_of(child) == pytest.approx(group_of(whole))


class Callbacks:
    """What keeps a learning rate of its own in the state, as Keras does."""

    def __init__(self, first: float) -> None:
        self.state: dict[str, Any] = {"rates": {"base_lrs": [first], "_last_lr": [first]}, "counted": 0}

    def state_dict(self) -> dict[str, Any]:
        return dict(self.state)

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        self.state = dict(state_dict)


def test_what_names_its_learning_rates_as_schedulers_do_goes_on_in_their_scale(tmp_path: Path) -> None:
    parent, child = (built(torch.optim.SGD, lambda _, lr=lr: Callbacks(lr), lr=lr) for lr in (0.1, 0.2))
    parent.extras["schedule"].load_state_dict({"rates": {"base_lrs": [0.1], "_last_lr": [0.05]}, "counted": 7})

    began(tmp_path, child, parent)

    expected = {"rates": {"base_lrs": [0.2], "_last_lr": [0.1]}, "counted": 7}
    assert child.extras["schedule"].state_dict() == expected


def test_the_same_numbers_give_the_same_bits(tmp_path: Path) -> None:
    parent = built(torch.optim.SGD, SCHEDULES["cosine"], lr=0.1, momentum=0.9)
    train(parent, 3)

    child = began(tmp_path, built(torch.optim.SGD, SCHEDULES["cosine"], lr=0.1, momentum=0.9), parent)
    for one in (parent, child):
        train(one, 4)

    assert child.digest() == parent.digest()


def test_with_a_checkpoint_of_its_own_it_resumes_as_everybody_does(tmp_path: Path) -> None:
    parent = built(torch.optim.SGD, lr=0.1)
    child = built(torch.optim.SGD, lr=0.02)
    later = built(torch.optim.SGD, lr=0.005)  # its script has lowered it since
    saved_in(tmp_path / "result" / "checkpoint", later, 5)
    results = results_of(tmp_path, child, saved_in(tmp_path / "origin", parent, 3))

    found = results.newest()
    results.close()

    assert found is not None
    assert (found["step"], found["optimizers"][""]["param_groups"][0]["lr"]) == (5, 0.005)


def test_what_does_not_fit_is_said_when_it_is_loaded(tmp_path: Path) -> None:
    parent = built(torch.optim.SGD, lr=0.1)
    other = built(lambda groups, lr: torch.optim.SGD([{"params": [groups[0]["params"][0]]}], lr=lr), lr=0.2)

    with pytest.raises(Exception, match="the saved state does not fit the model and the optimizers of this script"):
        began(tmp_path, other, parent)


def test_a_child_whose_shape_is_another_is_told_what_a_population_can_search(tmp_path: Path) -> None:
    parent, child = built(torch.optim.SGD, lr=0.1), built(torch.optim.SGD, lr=0.2)
    child.model.weight = torch.nn.Parameter(torch.zeros(2, 5))

    with pytest.raises(TrainingError, match=r"size mismatch.*; a population searches only what can change in the mid"):
        began(tmp_path, child, parent)
