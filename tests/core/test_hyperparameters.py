"""What a person entered is checked as a whole, and written as `ps.conf`."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pliant.core.hyperparameters import (
    CONF_KEYS,
    LR_POLICIES,
    OPTIMIZERS,
    Hyperparameters,
    conf_lines,
    find_optimizer,
    problems_of,
    with_changes,
)


def wrong(**given: Any) -> dict[str, str]:
    return {problem.field: problem.message for problem in problems_of(Hyperparameters(**given))}


def test_the_defaults_can_be_trained() -> None:
    assert wrong() == {}


def test_every_problem_is_told_at_once() -> None:
    found = wrong(learning_rate=math.nan, batch_size=0, momentum=1.0, optimizer="Adam", lr_policy="step", rho=2.0)

    assert set(found) == {"learning_rate", "batch_size", "momentum", "rho", "lr_gamma", "lr_step_size"}
    assert "Adam has no such parameter" in found["momentum"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_takes_its_own_parameters_and_no_other(optimizer: str) -> None:
    everything = {name: True if name in ("nesterov", "amsgrad", "centered") else 0.5 for name in OPTIMIZERS[optimizer]}
    if optimizer == "SGD":
        everything["dampening"] = 0.0
    assert wrong(optimizer=optimizer, **everything) == {}
    strangers = {"momentum", "rho", "beta1", "lambd", "lr_decay"} - OPTIMIZERS[optimizer]
    assert set(wrong(optimizer=optimizer, **dict.fromkeys(strangers, 0.5))) == strangers


@pytest.mark.parametrize("name", ["Ftrl", "AdagradDA", "ProximalAdagrad", "ProximalGradientDescent"])
def test_what_only_tensorflow_has_is_said_to_be_so(name: str) -> None:
    assert "TensorFlow's; torch has none like it" in wrong(optimizer=name)["optimizer"]


def test_names_of_optimizers_are_known_in_any_case() -> None:
    assert (find_optimizer("adagrad"), find_optimizer("RMSPROP"), find_optimizer("LBFGS")) == (
        "Adagrad",
        "RMSprop",
        None,
    )


def test_a_change_of_none_goes_back_to_the_default_and_names_are_taken_in_any_case() -> None:
    before = Hyperparameters(epochs=3, momentum=0.5)

    changed = with_changes(before, {"epochs": None, "optimizer": "adam", "lr_policy": "EXP"})

    assert changed == Hyperparameters(momentum=0.5, optimizer="Adam", lr_policy="exp")
    assert with_changes(before, {"optimizer": "LBFGS"}).optimizer == "LBFGS", "what there is not is told later"


GIVEN: dict[str, Any] = {
    "lr_gamma": 0.5,
    "lr_step_size": 2,
    "lr_power": 2.0,
    "lr_milestones": (2, 4),
    "lr_values": (0.1, 0.01, 0.001),
    "lr_end": 0.001,
    "lr_staircase": True,
    "lr_patience": 1,
}


@pytest.mark.parametrize("policy", LR_POLICIES)
def test_a_policy_says_what_it_lacks_and_what_is_too_much(policy: str) -> None:
    needs, takes = LR_POLICIES[policy].needs, LR_POLICIES[policy].takes
    fitting = {name: value for name, value in GIVEN.items() if name in needs | takes}
    assert wrong(lr_policy=policy, **fitting) == {}
    assert set(wrong(lr_policy=policy)) >= needs
    others = {name: value for name, value in GIVEN.items() if name not in needs | takes}
    assert set(wrong(lr_policy=policy, **fitting, **others)) == set(others)


def test_milestones_grow_and_have_one_value_more() -> None:
    assert "growing" in wrong(lr_policy="multistep", lr_gamma=0.1, lr_milestones=(4, 2))["lr_milestones"]
    piecewise = {"lr_policy": "piecewise", "lr_milestones": (2,), "lr_values": (0.1,)}
    assert "one part more" in wrong(**piecewise)["lr_values"]


def test_nesterov_needs_a_momentum() -> None:
    assert "nesterov" in wrong(nesterov=True)
    assert wrong(nesterov=True, momentum=0.9) == {}
    assert "momentum" in wrong(optimizer="Nesterov", momentum=0.0)


def test_ps_conf_holds_what_was_given_and_nothing_else() -> None:
    chosen = Hyperparameters(optimizer="Adam", beta1=0.8, beta2=0.9, epsilon=1e-6, amsgrad=True)
    lines = conf_lines(replace(chosen, lr_policy="multistep", lr_gamma=0.1, lr_milestones=(2, 4)))

    assert lines == (
        "base_lr=0.01",
        "batch_size=32",
        "test_batch_size=64",
        "epoch=10",
        "optimizer=Adam",
        "beta1=0.8",
        "beta2=0.9",
        "eps=1e-06",
        "amsgrad=true",
        "lr_policy=multistep",
        "lr_decay_rate=0.1",
        "lr_milestones=2,4",
    )
    assert len(set(CONF_KEYS.values())) == len(CONF_KEYS)
