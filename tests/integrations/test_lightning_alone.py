"""One worker: what a person sees of `Trainer(strategy=ElasticStrategy())` is what plain Lightning shows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.plugins.precision import MixedPrecision
from tests.integrations.modules import HUSHED, STEPS_PER_EPOCH, Count, Net, digest_of, loader, make_trainer, quiet
from tests.train.loops import training_context

from pliant.core.link import Claimed, FromTask, Params, Report
from pliant.integrations.lightning import ElasticStrategy
from pliant.train.context import TrainContext

pytestmark = [pytest.mark.timeout(120), *HUSHED]


@pytest.fixture
def told() -> list[FromTask]:
    return []


@pytest.fixture(autouse=True)
def job(told: list[FromTask]) -> Iterator[TrainContext]:
    """Be the only task of a job with one virtual worker."""
    with training_context(told) as context:
        yield context


def fit(elastic: bool, module: Net | None = None, train: Any = None, **options: Any) -> tuple[Net, Any, Count]:
    """Train plainly or elastically; return the module, the Trainer and what was seen."""
    count, module = Count(), module or Net()
    callbacks = [count, *options.pop("callbacks", [])]
    if elastic:
        options["strategy"] = options.get("strategy") or ElasticStrategy()
    trainer = make_trainer(**{"max_epochs": 3, **options}, callbacks=callbacks)
    trainer.fit(module, train or loader(), loader(batch_size=32))
    return module, trainer, count


def by_step(optimizer: torch.optim.Optimizer) -> Any:
    return {"scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9), "interval": "step", "frequency": 3}


def by_epoch(optimizer: torch.optim.Optimizer) -> Any:
    return {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), "interval": "epoch"}


def on_plateau(optimizer: torch.optim.Optimizer) -> Any:
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, threshold=0.9)
    return {"scheduler": plateau, "monitor": "val_loss"}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": dict,
    "norm clipped": lambda: {"gradient_clip_val": 0.05},
    "values clipped": lambda: {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"},
    "schedule by steps": lambda: {"module": Net(schedule=by_step)},
    "schedule by epochs": lambda: {"module": Net(schedule=by_epoch)},
    "schedule on a plateau": lambda: {"module": Net(schedule=on_plateau)},
    "stopped early": lambda: {"callbacks": [EarlyStopping("val_loss", min_delta=0.2, patience=0)], "max_epochs": 9},
    "stopped early, but not before": lambda: {
        "callbacks": [EarlyStopping("val_loss", min_delta=9.0, patience=0)],
        "max_epochs": 9,
        "min_epochs": 4,
    },
    "steps bounded": lambda: {"max_steps": 6, "max_epochs": -1},
    "batches limited": lambda: {"limit_train_batches": 2, "limit_val_batches": 1},
    "batches accumulated": lambda: {"train": loader(64, 8), "accumulate_grad_batches": 1},
    "last batch dropped": lambda: {"train": loader(drop_last=True)},
    "overfitted": lambda: {"overfit_batches": 2},
    "validated every other epoch": lambda: {"check_val_every_n_epoch": 2},
    "in bfloat16": lambda: {"precision": "bf16-mixed"},
    "in doubles": lambda: {"precision": "64-true"},
    "fast development run": lambda: {"fast_dev_run": 2},
}


@pytest.mark.parametrize("name", CASES)
def test_one_virtual_worker_gives_bit_for_bit_what_plain_lightning_gives(name: str) -> None:
    plain, theirs, expected = fit(False, **CASES[name]())
    module, trainer, count = fit(True, **CASES[name]())

    assert digest_of(module, trainer) == digest_of(plain, theirs)
    assert count.seen == expected.seen, "every hook, in this order, with these steps, losses, gradients and metrics"
    assert (trainer.global_step, trainer.current_epoch) == (theirs.global_step, theirs.current_epoch)
    assert [group["lr"] for group in trainer.optimizers[0].param_groups] == [
        group["lr"] for group in theirs.optimizers[0].param_groups
    ]


def test_accumulated_batches_are_one_global_batch_and_one_step() -> None:
    plain, theirs, _ = fit(False, train=loader(64, 8), accumulate_grad_batches=4)
    module, trainer, count = fit(True, train=loader(64, 8), accumulate_grad_batches=4)

    torch.testing.assert_close(module.state_dict(), plain.state_dict())
    assert trainer.global_step == theirs.global_step == 6
    assert [seen[1] for seen in count.seen if seen[0] == "batch end"] == [0, 1] * 3, "batch_idx counts steps"
    assert trainer.num_training_batches == 2


def test_float16_is_scaled_and_stepped_as_by_lightning() -> None:
    def plugins() -> list[Any]:
        return [MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=2.0**18))]

    plain, theirs, _ = fit(False, plugins=plugins())
    module, trainer, _ = fit(True, plugins=plugins())

    assert digest_of(module, trainer) == digest_of(plain, theirs)
    assert trainer.precision_plugin.scaler.get_scale() == theirs.precision_plugin.scaler.get_scale() < 2.0**18


def test_parts_change_nothing_but_the_rounding_and_every_hook_comes_once_a_step() -> None:
    plain, _, expected = fit(False)
    module, _, count = fit(True, strategy=ElasticStrategy(virtual_workers=8))

    torch.testing.assert_close(module.state_dict(), plain.state_dict())
    assert [seen[0] for seen in count.seen] == [seen[0] for seen in expected.seen]
    assert count.counts["batch end"] == count.counts["before step"] == count.counts["batch start"] == 12
    mine, theirs = count.seen[-2][3], expected.seen[-2][3]
    assert mine == pytest.approx(theirs, rel=1e-5), "values are those of the whole global batch, weighted by samples"


def test_job_hears_losses_validation_and_hyperparameters(told: list[FromTask]) -> None:
    _, trainer, _ = fit(True)

    points = {point.name: point.value for one in told if isinstance(one, Report) for point in one.points}
    assert points["val_loss"] == pytest.approx(float(trainer.callback_metrics["val_loss"]))
    assert {"loss", "train_loss", "val_accuracy"} < set(points)
    assert [one.values for one in told if isinstance(one, Params)] == [{"lr": 0.1}]
    assert {one.claim for one in told if isinstance(one, Claimed)} == {"exact"}


def test_leader_saves_among_the_results_and_logs(job: TrainContext, tmp_path: Any) -> None:
    job.result_dir = tmp_path / "result"
    saver = ModelCheckpoint(monitor="val_loss", save_top_k=1, save_last=True)
    logger = CSVLogger(str(tmp_path / "logs"))
    module, trainer, _ = fit(
        True,
        callbacks=[saver, LearningRateMonitor("step")],
        logger=logger,
        enable_checkpointing=True,
        log_every_n_steps=1,
    )

    assert saver.best_model_path == str(tmp_path / "result/lightning/epoch=2-step=12.ckpt")
    assert (tmp_path / "result/lightning/last.ckpt").exists()
    assert Net.load_from_checkpoint(saver.best_model_path).lr == 0.1
    assert (tmp_path / "result/model/model.pt").exists(), "the model as Pliant saves it"
    rows = (tmp_path / "logs/lightning_logs/version_0/metrics.csv").read_text().splitlines()
    assert len([row for row in rows[1:] if "train_loss_step" in rows[0]]) >= 3 * STEPS_PER_EPOCH
    assert "lr: 0.1" in (tmp_path / "logs/lightning_logs/version_0/hparams.yaml").read_text()
    [found] = trainer.validate(module, loader(batch_size=32), verbose=False)
    assert found["val_loss"] == pytest.approx(float(saver.best_model_score or 0.0)), "after the training as usual"


def test_both_packages_of_lightning_are_served() -> None:
    import pytorch_lightning as pl

    from pliant.integrations.pytorch_lightning import ElasticStrategy as Theirs

    class Other(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net().net

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    module = Other()
    pl.Trainer(**quiet(max_epochs=3), strategy=Theirs()).fit(module, loader())
    expected, _, _ = fit(True)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), expected.net.parameters(), strict=True))
