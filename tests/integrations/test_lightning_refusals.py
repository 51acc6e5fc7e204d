"""What an elastic training with Lightning cannot be is refused, by the name that a person wrote."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import GradientAccumulationScheduler, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.plugins.precision import Precision
from lightning.pytorch.utilities import CombinedLoader
from tests.integrations.modules import HUSHED, Net, loader, make_trainer, samples
from tests.train.loops import training_context
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

from pliant.integrations.elastic_lightning.strategy import make_strategy
from pliant.integrations.lightning import ElasticStrategy
from pliant.train import TrainingError
from pliant.train.context import TrainContext

pytestmark = [pytest.mark.timeout(60), *HUSHED]


@pytest.fixture(autouse=True)
def job() -> Iterator[TrainContext]:
    with training_context() as context:
        yield context


def fit(module: Net | None = None, train: Any = None, ckpt_path: Any = None, **options: Any) -> Any:
    trainer = make_trainer(**{"max_epochs": 2, "strategy": ElasticStrategy(), **options})
    trainer.fit(module or Net(), loader() if train is None else train, ckpt_path=ckpt_path)
    return trainer


class OddPrecision(Precision):
    """Somebody's own."""


class Manual(Net):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


class OwnBackward(Net):
    def backward(self, loss: Any) -> None:
        loss.backward()


class OwnStep(Net):
    def optimizer_step(self, *args: Any, **named: Any) -> None:
        super().optimizer_step(*args, **named)


class Skips(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return None if batch_idx == 1 else super().training_step(batch, batch_idx)


class LeavesEpoch(Net):
    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        return -1 if batch_idx == 2 else None


class LogsMetric(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        out = self.net(batch[0])
        self.accuracy(out.argmax(dim=1), batch[1])
        self.log("train_accuracy", self.accuracy)
        return torch.nn.functional.cross_entropy(out, batch[1])


class LogsSum(Net):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("num_right", 3.0, reduce_fx="sum")
        return super().training_step(batch, batch_idx)


class NoOptimizer(Net):
    def configure_optimizers(self) -> Any:
        return None


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from (samples()[index] for index in range(60))


ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "devices": ({"devices": 2}, "Trainer(devices=2): a task has one device"),
    "num_nodes": ({"num_nodes": 2}, "Trainer(num_nodes=2): Pliant chooses the nodes"),
    "sync_batchnorm": ({"sync_batchnorm": True}, "Trainer(sync_batchnorm=True)"),
    "reload": ({"reload_dataloaders_every_n_epochs": 1}, "Trainer(reload_dataloaders_every_n_epochs=1)"),
    "val_check_interval": ({"val_check_interval": 2}, "Trainer(val_check_interval=2, check_val_every_n_epoch=1)"),
    "endless": ({"max_epochs": -1}, "Trainer(max_epochs=-1): a job has an end"),
    "max_time": ({"max_time": {"hours": 1}}, "the callback Timer: (or max_time=…) stops by the clock"),
    "precision": ({"plugins": [OddPrecision()]}, "the precision plugin OddPrecision"),
    "callbacks": (
        {"callbacks": [GradientAccumulationScheduler({1: 2}), StochasticWeightAveraging(0.1)]},
        "the callback GradientAccumulationScheduler: the global batch does not change",
    ),
    "saving by the clock": (
        {"enable_checkpointing": True, "callbacks": [ModelCheckpoint(train_time_interval=timedelta(minutes=1))]},
        "ModelCheckpoint(train_time_interval=…): it saves by the clock",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_argument_of_the_trainer_is_refused(name: str) -> None:
    options, words = ARGUMENTS[name]
    with pytest.raises(TrainingError, match=re.escape(words)):
        fit(**options)


MODULES: dict[str, tuple[Callable[[], Net], str]] = {
    "manual": (Manual, "automatic_optimization=False"),
    "backward": (OwnBackward, "OwnBackward.backward is overridden: Pliant calls backward"),
    "optimizer_step": (OwnStep, "OwnStep.optimizer_step is overridden: all tasks step together"),
    "a batch left out": (Skips, "training_step returned NoneType for batch_idx 1"),
    "an epoch left": (LeavesEpoch, "on_train_batch_start returned -1"),
    "a metric logged": (LogsMetric, "self.log('train_accuracy', …) in training_step got a BinaryAccuracy"),
    "a sum logged": (LogsSum, "self.log('num_right', reduce_fx='sum') in training_step"),
    "no optimizer": (NoOptimizer, "configure_optimizers returned no optimizer"),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:`LightningModule.configure_optimizers` returned `None`")
def test_module_is_refused(name: str) -> None:
    make, words = MODULES[name]
    with pytest.raises(TrainingError, match=re.escape(words)):
        fit(make())


LOADERS: dict[str, tuple[Callable[[], Any], str]] = {
    "several": (
        lambda: [loader(), loader()],
        "the train dataloader is a list; ElasticStrategy needs one",
    ),
    "combined": (lambda: CombinedLoader([loader()], "min_size"), "the train dataloader is a CombinedLoader"),
    "no batches": (lambda: DataLoader(samples(), batch_size=None), "DataLoader without batch_size"),
    "sampler": (
        lambda: DataLoader(samples(), batch_size=16, sampler=WeightedRandomSampler([1.0] * 60, 60)),
        "WeightedRandomSampler",
    ),
    "no length": (lambda: DataLoader(Endless(), batch_size=16), "the train data set Endless has no length"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_dataloader_is_refused(name: str) -> None:
    make, words = LOADERS[name]
    with pytest.raises(TrainingError, match=re.escape(words)):
        fit(train=make())


def test_all_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(TrainingError, match=r"num_nodes=2.*; .*Timer.*; automatic_optimization=False"):
        fit(Manual(), num_nodes=2, max_time={"hours": 1})


def test_a_second_fit_with_one_trainer_is_refused() -> None:
    trainer = fit()
    with pytest.raises(TrainingError, match="fit\\(\\) was called a second time"):
        trainer.fit(Net(), loader())


def test_checkpoint_of_elsewhere_is_refused_and_one_of_the_job_is_left_to_pliant(
    job: TrainContext, tmp_path: Path
) -> None:
    fit(enable_checkpointing=True, callbacks=[ModelCheckpoint(tmp_path / "elsewhere", save_last=True)])
    with pytest.raises(TrainingError, match=r"fit\(ckpt_path='.*last.ckpt'\): an elastic training goes on from Pliant"):
        fit(ckpt_path=tmp_path / "elsewhere/last.ckpt")

    job.result_dir = tmp_path
    trainer = fit(ckpt_path=tmp_path / "elsewhere/last.ckpt")
    assert trainer.global_step == 8, "as if it had not been said: Pliant's own checkpoint counts, and there is none"


def test_missing_package_is_named_with_what_installs_it() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pliant\[lightning\]'"):
        make_strategy("lightning_of_next_year", extra="lightning")


def test_endless_stream_is_trained_on_with_a_limit() -> None:
    trainer = fit(train=DataLoader(Endless(), batch_size=16), limit_train_batches=3)
    assert trainer.global_step == 6


def test_order_of_ones_own_takes_the_place_of_a_sampler() -> None:
    seen: list[int] = []

    class Looks(Net):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            seen.append(len(batch[0]))
            return super().training_step(batch, batch_idx)

    weighted = DataLoader(samples(), batch_size=16, sampler=WeightedRandomSampler([1.0] * 60, 60))
    fit(Looks(), train=weighted, strategy=ElasticStrategy(order=lambda epoch: range(epoch, epoch + 20)))
    assert seen == [16, 4, 16, 4]


def test_data_module_its_state_and_a_seed_of_everything(
    job: TrainContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "11")
    job.result_dir, job.checkpoint_freq = tmp_path, 1

    class Data(L.LightningDataModule):
        def __init__(self) -> None:
            super().__init__()
            self.num_trained = 0

        def train_dataloader(self) -> Any:
            return loader(shuffle=True)

        def state_dict(self) -> dict[str, Any]:
            return {"num_trained": self.num_trained}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self.num_trained = state_dict["num_trained"]

    class Counts(Net):
        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            self.trainer.datamodule.num_trained += 1

        def on_train_epoch_end(self) -> None:
            if self.current_epoch == stop_in:
                raise KeyError("the task dies here")

    strategy, stop_in = ElasticStrategy(), 1
    with pytest.raises(KeyError, match="dies here"):
        make_trainer(max_epochs=3, strategy=strategy).fit(Counts(), datamodule=Data())
    for clean_up in reversed(job.cleanups):
        clean_up()
    job.cleanups.clear()
    stop_in, data = 9, Data()
    trainer = make_trainer(max_epochs=3, strategy=ElasticStrategy())
    trainer.fit(Counts(), datamodule=data)
    assert (data.num_trained, trainer.global_step, trainer.current_epoch, strategy.seed) == (12, 12, 3, 11)
