"""Settings come from `ps.conf`, and what is missing is named."""

from pathlib import Path

import pytest
import torch
from torch.optim.lr_scheduler import ExponentialLR, StepLR

from pliant.compat import pth_parameter_mgr
from pliant.core.errors import InvalidInput, NotFound


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PS_PATH", "DLI_WORK_DIR", "DATA_DIR"):
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


@pytest.mark.parametrize("name", ["SGD", "adam", "AdamW", "RMSprop", "Adagrad", "Adadelta"])
def test_the_solver_is_built_by_its_name(conf: Path, name: str) -> None:
    conf.write_text(f"optimizer={name}\nbase_lr=0.25\nweight_decay=0.125\n")

    optimizer = pth_parameter_mgr.getOptimizer(MODEL)

    assert type(optimizer).__name__.lower() == name.lower()
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["weight_decay"]) == (0.25, 0.125)


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


def test_an_unknown_policy_is_refused(conf: Path) -> None:
    conf.write_text("lr_policy=poly")

    with pytest.raises(InvalidInput, match="'poly'; known are fixed, step, exp"):
        pth_parameter_mgr.getLearningRate(torch.optim.SGD(MODEL.parameters(), lr=1.0))
