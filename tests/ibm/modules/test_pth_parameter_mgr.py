"""Settings come from `ps.conf`, and what is missing is named."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau, StepLR

from pliant.core.errors import InvalidInput, NotFound
from pliant.core.hyperparameters import LR_POLICIES, OPTIMIZERS, Hyperparameters, conf_lines, problems_of
from pliant.ibm.modules import pth_parameter_mgr


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PS_PATH", "DLI_WORK_DIR", "DATA_DIR", "TRAIN_DATA_DIR", "TEST_DATA_DIR", "VAL_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ps.conf"


MODEL = torch.nn.Linear(2, 2)


def test_numbers_are_read(conf: Path) -> None:
    conf.write_text("# from the form\nbatch_size = 32\ntest_batch_size=64 # larger\n\nepoch=3\n")

    assert (
        pth_parameter_mgr.getTrainBatchSize(),
        pth_parameter_mgr.getTestBatchSize(),
        pth_parameter_mgr.getEpoch(),
    ) == (32, 64, 3)


@pytest.mark.parametrize("variable", ["PS_PATH", "DLI_WORK_DIR"])
def test_the_file_is_found_in_a_folder_that_a_variable_names(
    conf: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (conf.parent / "away").mkdir()
    (conf.parent / "away" / "ps.conf").write_text("epoch=5")
    monkeypatch.setenv(variable, str(conf.parent / "away"))

    assert pth_parameter_mgr.getEpoch() == 5


def test_ps_path_may_be_the_file_and_comes_before_the_working_folder(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf.write_text("epoch=1")
    other = conf.parent / "other.conf"
    other.write_text("epoch=2")
    monkeypatch.setenv("PS_PATH", str(other))

    assert pth_parameter_mgr.getEpoch() == 2


def test_a_missing_key_is_named_with_the_places_that_were_looked_at(conf: Path) -> None:
    with pytest.raises(NotFound, match=r"'epoch'.*ps\.conf.*add epoch=") as caught:
        pth_parameter_mgr.getEpoch()

    assert str(conf) in str(caught.value)


def test_text_for_a_number_is_refused(conf: Path) -> None:
    conf.write_text("epoch=ten")

    with pytest.raises(InvalidInput, match=r"epoch: ps\.conf says 'ten'"):
        pth_parameter_mgr.getEpoch()


def test_a_line_without_a_value_is_refused(conf: Path) -> None:
    conf.write_text("epoch=1\nbatch_size\n")

    with pytest.raises(InvalidInput, match=r"ps\.conf:2: expected key=value, found 'batch_size'"):
        pth_parameter_mgr.getEpoch()


def test_data_folders_fall_back_to_data_dir(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = conf.parent / "data"
    (data / "b").mkdir(parents=True)
    (data / "a.bin").touch()
    (data / "b" / "c.bin").touch()
    monkeypatch.setenv("DATA_DIR", str(data))

    assert pth_parameter_mgr.getTrainData(False) == str(data)
    assert pth_parameter_mgr.getTestData() == [str(data / "a.bin"), str(data / "b" / "c.bin")]


def test_data_of_the_settings_come_before_data_dir(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf.write_text("val_data=/somewhere")
    monkeypatch.setenv("DATA_DIR", "/elsewhere")

    assert pth_parameter_mgr.getValData(False) == "/somewhere"
    with pytest.raises(NotFound, match="val_data is /somewhere"):
        pth_parameter_mgr.getValData()


def test_without_any_data_the_error_names_both_ways(conf: Path) -> None:
    with pytest.raises(NotFound, match=r"add train_data=… or the environment variable DATA_DIR"):
        pth_parameter_mgr.getTrainData(False)


SET: dict[str, float | bool] = {
    "momentum": 0.5,
    "dampening": 0.0,
    "weight_decay": 0.125,
    "nesterov": True,
    "beta1": 0.75,
    "beta2": 0.5,
    "epsilon": 0.0625,
    "amsgrad": True,
    "rho": 0.25,
    "alpha": 0.375,
    "centered": True,
    "lambd": 0.03125,
    "lr_decay": 0.2,
}
"""A value for every parameter that an optimizer has, none of them torch's default."""
IN_TORCH = {"epsilon": "eps"}
FORMS = {"Momentum": "SGD", "Nesterov": "SGD", "GradientDescent": "SGD"}


def entered(name: str) -> Hyperparameters:
    """Return what a person entered who set every parameter of an optimizer."""
    return Hyperparameters(learning_rate=0.25, optimizer=name, **{key: SET[key] for key in OPTIMIZERS[name]})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_built_with_all_that_was_entered_and_steps(conf: Path, name: str) -> None:
    conf.write_text("\n".join(conf_lines(entered(name))))
    sparse = name == "SparseAdam"
    model: torch.nn.Module = torch.nn.Embedding(4, 2, sparse=True) if sparse else torch.nn.Linear(2, 2)
    before = [parameter.detach().clone() for parameter in model.parameters()]

    optimizer = pth_parameter_mgr.getOptimizer(model)

    assert type(optimizer).__name__ == FORMS.get(name, name)
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.25
    for key in OPTIMIZERS[name] - {"beta1", "beta2"}:
        assert group[IN_TORCH.get(key, key)] == SET[key], key
    if "beta1" in OPTIMIZERS[name]:
        assert group["betas"] == (0.75, 0.5)
    model(torch.tensor([0, 1]) if sparse else torch.ones(3, 2)).square().sum().backward()
    optimizer.step()
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_the_forms_of_sgd_have_a_momentum_of_their_own(conf: Path) -> None:
    found = {}
    for name in FORMS:
        conf.write_text(f"optimizer={name.lower()}\nbase_lr=0.25")
        (group,) = pth_parameter_mgr.getOptimizer(MODEL).param_groups
        found[name] = (group["momentum"], group["nesterov"])

    assert found == {"Momentum": (0.9, False), "Nesterov": (0.9, True), "GradientDescent": (0, False)}


def test_a_solver_gets_the_options_that_it_knows(conf: Path) -> None:
    conf.write_text("optimizer=SGD\nbase_lr=0.1\nmomentum=0.5\nnesterov=true\nbeta1=0.8\nbeta2=0.9\nrho=0.3\n")
    sgd = pth_parameter_mgr.getOptimizer(MODEL)
    conf.write_text("optimizer=Adam\nbase_lr=0.1\nmomentum=0.5\nbeta1=0.8\nbeta2=0.9\n")
    adam = pth_parameter_mgr.getOptimizer(MODEL)

    assert (sgd.param_groups[0]["momentum"], sgd.param_groups[0]["nesterov"]) == (0.5, True)
    assert adam.param_groups[0]["betas"] == (0.8, 0.9)


def test_an_unknown_solver_is_refused_with_the_known_ones(conf: Path) -> None:
    conf.write_text("optimizer=LBFGS\nbase_lr=0.1")

    with pytest.raises(InvalidInput, match=r"'LBFGS'; known are ASGD.*SGD"):
        pth_parameter_mgr.getOptimizer(MODEL)


def test_the_learning_rate_follows_the_policy(conf: Path) -> None:
    optimizer = torch.optim.SGD(MODEL.parameters(), lr=1.0)
    conf.write_text("lr_policy=step\nlr_decay_steps=2\nlr_decay_rate=0.1\n")
    step = pth_parameter_mgr.getLearningRate(optimizer)
    conf.write_text("lr_policy=exp\nlr_decay_rate=0.5\n")
    exponential = pth_parameter_mgr.getLearningRate(torch.optim.SGD(MODEL.parameters(), lr=1.0))

    assert isinstance(step, StepLR)
    assert isinstance(exponential, ExponentialLR)


def test_without_a_policy_the_learning_rate_is_fixed(conf: Path) -> None:
    optimizer = torch.optim.SGD(MODEL.parameters(), lr=0.5)
    schedule = pth_parameter_mgr.getLearningRate(optimizer)

    optimizer.step()
    schedule.step()

    assert optimizer.param_groups[0]["lr"] == 0.5


def rates(optimizer: torch.optim.Optimizer, num_epochs: int, losses: Sequence[float] = ()) -> list[float]:
    """Return the learning rates of so many epochs."""
    schedule = pth_parameter_mgr.getLearningRate(optimizer)
    found = []
    for epoch in range(num_epochs):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if isinstance(schedule, ReduceLROnPlateau):
            schedule.step(losses[epoch])
        else:
            schedule.step()
    return found


COURSES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "fixed": ({}, [0.5, 0.5, 0.5, 0.5]),
    "step": ({"lr_gamma": 0.1, "lr_step_size": 2}, [0.5, 0.5, 0.05, 0.05]),
    "multistep": ({"lr_gamma": 0.1, "lr_milestones": (1, 3)}, [0.5, 0.05, 0.05, 0.005]),
    "exp": ({"lr_gamma": 0.5}, [0.5, 0.25, 0.125, 0.0625]),
    "inv": ({"lr_gamma": 1.0, "lr_power": 2.0}, [0.5, 0.5 / 4, 0.5 / 9, 0.5 / 16]),
    "poly": ({"lr_power": 2.0}, [0.5, 0.5 * 0.5625, 0.5 * 0.25, 0.5 * 0.0625]),
    "sigmoid": ({"lr_gamma": 1.0, "lr_step_size": 2}, [0.5 / (1 + math.exp(2 - epoch)) for epoch in range(4)]),
    "exponential": ({"lr_gamma": 0.25, "lr_step_size": 2}, [0.5, 0.25, 0.125, 0.0625]),
    "inversetime": ({"lr_gamma": 1.0}, [0.5, 0.25, 0.5 / 3, 0.125]),
    "naturalexp": (
        {"lr_gamma": 1.0, "lr_step_size": 2, "lr_staircase": True},
        [0.5, 0.5, 0.5 / math.e, 0.5 / math.e],
    ),
    "piecewise": ({"lr_milestones": (1, 3), "lr_values": (0.5, 0.25, 2.0)}, [0.5, 0.25, 0.25, 2.0]),
    "polynomial": ({"lr_end": 0.1}, [0.5, 0.4, 0.3, 0.2]),
    "cosineannealing": ({"lr_end": 0.1}, [0.1 + 0.2 * (1 + math.cos(math.pi * e / 4)) for e in range(4)]),
    "reducelronplateau": ({"lr_gamma": 0.5, "lr_patience": 0}, [0.5, 0.5, 0.25, 0.25]),
}
"""What each policy takes, and the learning rates of four epochs that its formula gives."""


@pytest.mark.parametrize("policy", LR_POLICIES)
def test_every_policy_goes_as_its_formula_says(conf: Path, policy: str) -> None:
    given, expected = COURSES[policy]
    chosen = Hyperparameters(learning_rate=0.5, epochs=4, lr_policy=policy, **given)
    assert problems_of(chosen) == ()
    conf.write_text("\n".join(conf_lines(chosen)))

    found = rates(pth_parameter_mgr.getOptimizer(torch.nn.Linear(2, 2)), 4, losses=(1.0, 1.0, 0.5, 0.4))

    assert found == pytest.approx(expected)


def test_an_unknown_policy_is_refused(conf: Path) -> None:
    conf.write_text("lr_policy=warp")

    with pytest.raises(InvalidInput, match="'warp'; known are fixed, step"):
        pth_parameter_mgr.getLearningRate(torch.optim.SGD(MODEL.parameters(), lr=1.0))


def test_the_parts_of_a_data_set_come_before_all_of_it(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", "/all")
    monkeypatch.setenv("TRAIN_DATA_DIR", "/all/train")
    monkeypatch.setenv("VAL_DATA_DIR", "/all/validation")

    assert pth_parameter_mgr.getTrainData(False) == "/all/train"
    assert pth_parameter_mgr.getValData(False) == "/all/validation"
    assert pth_parameter_mgr.getTestData(False) == "/all"


def test_parameters_of_the_template_keep_their_kinds(conf: Path) -> None:
    assert pth_parameter_mgr.getParameters() == {}
    values = {"width": 8, "rate": 0.5, "deep": True, "label": "a=b # größe"}
    (conf.parent / "parameters.json").write_text(json.dumps({"parameters": values}))

    assert pth_parameter_mgr.getParameters() == values
    assert pth_parameter_mgr.getParameter("label") == "a=b # größe"
    assert pth_parameter_mgr.getParameter("depth", 3) == 3
    with pytest.raises(NotFound, match="no parameter 'depth'; it has deep, label, rate, width"):
        pth_parameter_mgr.getParameter("depth")


def test_a_file_that_is_no_parameters_is_refused(conf: Path) -> None:
    (conf.parent / "parameters.json").write_text("[]")

    with pytest.raises(InvalidInput, match=r"parameters\.json: expected an object"):
        pth_parameter_mgr.getParameters()
