"""An elastic Trainer alone: what the plain Trainer computes, calls, logs and saves."""

import json
import math
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integrations.transformers.small import (
    IGNORED,
    NUM_TEXTS,
    Counter,
    Recorder,
    Texts,
    collate,
    difference,
    make,
    weights,
)
from tests.train.loops import training_context
from torch.utils.data import DataLoader, IterableDataset, Subset, WeightedRandomSampler

from pliant.core.link import Finished, Params, Report
from pliant.integrations.transformers import elastic
from pliant.train import TrainingError
from pliant.train.context import TrainContext
from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, GPT2LMHeadModel, Trainer

pytestmark = pytest.mark.timeout(240)
STEPS = 6
"""Of an epoch."""
ROUNDING = 2e-4
"""Adam moves a weight by 0.1 in these trainings; a mean of means instead of one over tokens makes 100 times this."""
SEQUENTIAL: dict[str, Any] = {"train_sampling_strategy": "sequential"}


@pytest.fixture
def heard() -> list[Any]:
    return []


@pytest.fixture(autouse=True)
def context(heard: list[Any], tmp_path: Path) -> Iterator[TrainContext]:
    """Eight virtual workers; results below `result`."""
    torch.set_num_threads(1)
    with training_context(heard) as found:
        found.virtual_workers, found.result_dir = 8, tmp_path / "result"
        yield found


def logs(trainer: Any, name: str = "loss") -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_tokens_weigh_the_same_as_in_the_plain_trainer_whatever_the_padding(tmp_path: Path) -> None:
    plain = make(tmp_path, **SEQUENTIAL)
    expected = plain.train()
    trainer = elastic(make(tmp_path, **SEQUENTIAL))
    found = trainer.train()

    assert difference(trainer, plain) < ROUNDING
    assert found.global_step == expected.global_step == 2 * STEPS
    assert found.training_loss == pytest.approx(expected.training_loss, rel=1e-5)
    for name in ("loss", "grad_norm", "learning_rate"):
        assert logs(trainer, name) == pytest.approx(logs(plain, name), rel=1e-4), name
    assert trainer._elastic_loop._run.claim == "exact"


def test_one_virtual_worker_gives_the_bits_of_the_plain_trainer(tmp_path: Path, context: TrainContext) -> None:
    context.virtual_workers = 1
    plain = make(tmp_path, gradient_accumulation_steps=1, **SEQUENTIAL)
    plain.train()
    trainer = elastic(make(tmp_path, gradient_accumulation_steps=1, **SEQUENTIAL))
    trainer.train()

    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(trainer), weights(plain), strict=True))
    assert logs(trainer) == logs(plain)


class ByClass(Trainer):
    """The override that the manual of transformers shows: a mean over the tokens of what it is given."""

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        labels = inputs.pop("labels")[:, 1:]
        logits = model(**inputs).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        return (loss, {"logits": logits}) if return_outputs else loss


class OwnStep(Trainer):
    """Calls backward by itself."""

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        loss: torch.Tensor = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


@pytest.mark.parametrize("cls", [ByClass, OwnStep])
def test_a_subclass_with_a_loss_or_a_step_of_its_own_needs_nothing_else(cls: Any, tmp_path: Path) -> None:
    one_batch: dict[str, Any] = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, **SEQUENTIAL}
    plain = make(tmp_path, cls=cls, **one_batch)
    plain.train()
    trainer = elastic(make(tmp_path, cls=cls, **one_batch))
    trainer.train()

    assert isinstance(trainer, cls)
    assert difference(trainer, plain) < ROUNDING


def test_label_smoothing_weighs_tokens_too(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"label_smoothing_factor": 0.1, "num_train_epochs": 1, **SEQUENTIAL}
    plain = make(tmp_path, **arguments)
    plain.train()
    trainer = elastic(make(tmp_path, **arguments))
    trainer.train()

    assert difference(trainer, plain) < ROUNDING


def test_a_part_without_a_label_counts_nothing(tmp_path: Path) -> None:
    def mute(texts: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        batch = collate(texts)
        batch["labels"][batch["input_ids"][:, 0] < 15] = IGNORED
        return batch

    arguments: dict[str, Any] = {"num_train_epochs": 1, "collator": mute, **SEQUENTIAL}
    plain = make(tmp_path, **arguments)
    plain.train()
    trainer = elastic(make(tmp_path, **arguments))
    trainer.train()

    assert all(map(math.isfinite, logs(trainer)))
    assert difference(trainer, plain) < ROUNDING


def classify(texts: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    batch = collate(texts)
    batch["labels"] = batch["input_ids"][:, 0] % 2
    return batch


def small_bert() -> BertForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    drops = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertForSequenceClassification(
        BertConfig(vocab_size=20, max_position_embeddings=16, num_labels=2, **sizes, **drops)
    )


def test_a_classifier_trains_as_plainly(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "collator": classify,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 1,
        **SEQUENTIAL,
    }
    plain = make(tmp_path, model=small_bert(), **arguments)
    plain.train()
    trainer = elastic(make(tmp_path, model=small_bert(), **arguments))
    trainer.train()

    assert difference(trainer, plain) < ROUNDING


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # dynamo, of a plain one too
@pytest.mark.parametrize(
    "arguments",
    [
        {"bf16": True},
        {"activation_checkpointing": True},
        {"torch_compile": True, "torch_compile_backend": "eager"},
        {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "epoch", "metric_for_best_model": "loss"},
        {"max_grad_norm": 0.0, "optim": "sgd", "warmup_steps": 3, "lr_scheduler_type": "cosine"},
        {"neftune_noise_alpha": 5.0, "adam_beta2": 0.9, "weight_decay": 0.1},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_arguments_of_the_plain_trainer_are_taken_over(arguments: dict[str, Any], tmp_path: Path) -> None:
    usual: dict[str, Any] = {
        "num_train_epochs": 1,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 1,
        **SEQUENTIAL,
    }
    plain = make(tmp_path, **{**usual, **arguments})
    plain.train()
    trainer = elastic(make(tmp_path, **{**usual, **arguments}))
    trainer.train()

    draws, rough = "neftune_noise_alpha" in arguments, "bf16" in arguments
    assert logs(trainer)[:1] == pytest.approx(logs(plain)[:1], rel=0.05 if draws else 1e-2 if rough else 1e-5)
    assert draws or difference(trainer, plain) < (5e-2 if rough else ROUNDING)
    assert logs(trainer, "learning_rate") == logs(plain, "learning_rate")


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")  # of transformers' evaluation
def test_the_example_runs_and_learns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "--max-steps", "30"])
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "transformers" / "train.py"), run_name="__main__")

    assert float(capsys.readouterr().out.rpartition(":")[2]) < 2.2, "it begins at 2.7"


# -- the loop ---------------------------------------------------------------------------------------------------------


def test_callbacks_are_called_as_by_the_plain_trainer(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_strategy": "epoch",
        "eval_on_start": True,
    }
    recorders = Recorder(), Recorder()
    make(tmp_path / "plain", callbacks=[recorders[0]], **arguments).train()
    elastic(make(tmp_path / "elastic", callbacks=[recorders[1]], **arguments)).train()

    expected = recorders[0].calls
    expected.remove(("log", 0))
    expected.remove(("evaluate", 0))  # eval_on_start, which comes after the beginning of the first epoch there
    found = recorders[1].calls
    found.remove(("log", 0))
    found.remove(("evaluate", 0))
    assert found == expected
    assert [step for name, step in found if name == "step end"] == list(range(1, 2 * STEPS + 1))


@pytest.mark.parametrize(
    ("arguments", "num_steps", "epoch"),
    [({"max_steps": 8}, 8, 8 / 6), ({"num_train_epochs": 0.5}, 3, 0.5), ({"max_steps": 3}, 3, 0.5)],
)
def test_a_training_ends_where_it_is_asked_to(
    arguments: dict[str, Any], num_steps: int, epoch: float, tmp_path: Path, heard: list[Any]
) -> None:
    trainer = elastic(make(tmp_path, **arguments))

    assert trainer.train().global_step == num_steps
    assert (trainer.state.global_step, trainer.state.epoch) == (num_steps, pytest.approx(epoch))
    assert [message.step for message in heard if isinstance(message, Finished)] == [num_steps]


def test_early_stopping_ends_it_and_the_best_model_is_the_result(tmp_path: Path, context: TrainContext) -> None:
    trainer = elastic(
        make(
            "out",
            callbacks=[EarlyStoppingCallback(early_stopping_patience=2)],
            learning_rate=10.0,  # gets worse
            num_train_epochs=50,
            eval_strategy="steps",
            eval_steps=1,
            save_strategy="steps",
            save_steps=1,
            load_best_model_at_end=True,
            metric_for_best_model="loss",
        )
    )
    assert trainer.train().global_step < 50

    assert context.result_dir is not None
    best = GPT2LMHeadModel.from_pretrained(trainer.state.best_model_checkpoint)
    assert str(context.result_dir / "out") in trainer.state.best_model_checkpoint
    kept = GPT2LMHeadModel.from_pretrained(context.result_dir / "model")
    for mine, saved, chosen in zip(weights(trainer), kept.parameters(), best.parameters(), strict=True):
        assert torch.equal(mine, saved)
        assert torch.equal(mine, chosen)
    assert trainer.state.best_metric == min(logs(trainer, "eval_loss"))


def test_results_are_written_below_the_result_folder(tmp_path: Path, context: TrainContext, heard: list[Any]) -> None:
    trainer = elastic(make("out", save_strategy="epoch", save_total_limit=1, num_train_epochs=2))
    trainer.train()
    trainer.save_state()

    assert context.result_dir is not None
    assert [path.name for path in (context.result_dir / "out").glob("checkpoint-*")] == [f"checkpoint-{2 * STEPS}"]
    assert json.loads((context.result_dir / "out" / "trainer_state.json").read_text())["global_step"] == 2 * STEPS
    assert {"config.json", "model.safetensors", "model.pt", "digest"} <= {
        path.name for path in (context.result_dir / "model").iterdir()
    }
    names = {point.name for message in heard if isinstance(message, Report) for point in message.points}
    assert {"loss", "learning_rate", "grad_norm", "train_loss"} <= names
    params = {name: value for message in heard if isinstance(message, Params) for name, value in message.values.items()}
    assert params["learning_rate"] == 1e-2
    loaded = trainer.evaluate()
    assert loaded["eval_loss"] > 0


def test_a_job_goes_on_from_pliants_own_checkpoint(tmp_path: Path, context: TrainContext) -> None:
    class Pause(Recorder):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            super().on_step_end(args, state, control)
            if state.global_step == STEPS + 2:
                raise InterruptedError

    context.checkpoint_freq = 1
    whole = elastic(make(tmp_path, dropout=0.1, callbacks=[Counter()]))
    context.result_dir = tmp_path / "whole"
    whole.train()
    context.result_dir = tmp_path / "cut"
    with pytest.raises(InterruptedError):
        elastic(make(tmp_path, dropout=0.1, callbacks=[Counter(), Pause()])).train()
    for clean_up in reversed(context.cleanups):
        clean_up()
    counter, recorder = Counter(), Recorder()
    trainer = elastic(make(tmp_path, dropout=0.1, callbacks=[counter, recorder]))
    trainer.train(resume_from_checkpoint=True)

    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights(trainer), weights(whole), strict=True))
    assert counter.num_steps == 2 * STEPS
    assert logs(trainer) == logs(whole)
    assert [step for name, step in recorder.calls if name == "step end"][-STEPS:] == list(
        range(STEPS + 1, 2 * STEPS + 1)
    )


def test_to_resume_from_a_folder_where_pliant_has_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match="resume_from_checkpoint='out/checkpoint-5': a job goes on from Pliant's own"
    ):
        elastic(make(tmp_path)).train(resume_from_checkpoint="out/checkpoint-5")


def test_a_callback_that_leaves_an_epoch_is_refused(tmp_path: Path) -> None:
    class Leave(Recorder):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_epoch_stop = True

    with pytest.raises(TrainingError, match=r"control\.should_epoch_stop at step 1"):
        elastic(make(tmp_path, callbacks=[Leave()])).train()


def test_tokens_seen_are_those_of_all_parts(tmp_path: Path) -> None:
    trainer = elastic(make(tmp_path, include_num_input_tokens_seen="non_padding"))
    trainer.train()

    texts = Texts()
    assert trainer.state.num_input_tokens_seen == 2 * sum(len(texts[i]["input_ids"]) for i in range(NUM_TEXTS))


# -- data -------------------------------------------------------------------------------------------------------------


class Noting(Texts):
    """Notes which texts are used."""

    def __init__(self, num_texts: int = NUM_TEXTS) -> None:
        super().__init__(num_texts)
        self.used: list[int] = []

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        self.used.append(index)
        return super().__getitem__(index)


@pytest.mark.parametrize("arguments", [{}, {"train_sampling_strategy": "group_by_length"}, {"data_seed": 5}])
def test_every_sample_is_used_once_an_epoch(arguments: dict[str, Any], tmp_path: Path) -> None:
    data = Noting()
    trainer = make(tmp_path, data=data, **arguments)
    data.used.clear()
    trainer = elastic(trainer)
    trainer.train()

    first, second = data.used[-2 * NUM_TEXTS : -NUM_TEXTS], data.used[-NUM_TEXTS:]
    assert sorted(first) == sorted(second) == list(range(NUM_TEXTS))
    assert first != second


def test_the_order_is_that_of_data_seed(tmp_path: Path) -> None:
    orders = []
    for seed, data_seed in ((1, 7), (2, 7), (2, 8)):
        data = Noting()
        elastic(make(tmp_path, data=data, seed=seed, data_seed=data_seed, num_train_epochs=1)).train()
        orders.append(data.used)

    assert orders[0] == orders[1] != orders[2]


def test_drop_last_leaves_out_what_the_plain_trainer_leaves_out(tmp_path: Path) -> None:
    data = Noting(45)
    trainer = elastic(make(tmp_path, data=data, dataloader_drop_last=True, num_train_epochs=1, **SEQUENTIAL))

    assert trainer.train().global_step == STEPS
    assert data.used == list(range(44))


def test_loader_processes_change_no_bit(tmp_path: Path) -> None:
    trainers = [elastic(make(tmp_path, num_train_epochs=1, dataloader_num_workers=number)) for number in (0, 2)]
    for trainer in trainers:
        trainer.train()

    assert difference(*trainers) == 0.0


class Weighted(Trainer):
    """Chooses samples by weight, as subclasses do."""

    def get_train_dataloader(self) -> Any:
        sampler = WeightedRandomSampler([1.0] * 20 + [0.0] * (NUM_TEXTS - 20), num_samples=16)
        return DataLoader(self.train_dataset, batch_size=4, sampler=sampler, collate_fn=self.data_collator)


def test_a_loader_and_a_sampler_of_its_own_are_taken_over(tmp_path: Path) -> None:
    data = Noting()
    trainer = elastic(make(tmp_path, cls=Weighted, data=data, num_train_epochs=1))

    assert trainer.train().global_step == 2
    assert len(data.used) == 16
    assert max(data.used) < 20


class Restless(Trainer):
    """Its sampler has a memory."""

    def get_train_dataloader(self) -> Any:
        count = iter(range(1000))

        class Sampler(torch.utils.data.Sampler[int]):
            def __len__(self) -> int:
                return 8

            def __iter__(self) -> Iterator[int]:
                start = next(count)
                return iter(range(start, start + 8))

        return DataLoader(self.train_dataset, batch_size=4, sampler=Sampler(), collate_fn=self.data_collator)


def test_a_sampler_that_draws_by_what_it_drew_before_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="the sampler Sampler draws another order for the same epoch"):
        elastic(make(tmp_path, cls=Restless)).train()


class Stream(IterableDataset[Any]):
    """Texts in a row, without a length."""

    def __iter__(self) -> Iterator[Any]:
        return (Texts()[index] for index in range(20))


def test_a_stream_is_read_again_until_the_steps_are_done(tmp_path: Path) -> None:
    trainer = elastic(make(tmp_path, data=Stream(), max_steps=7))

    assert trainer.train().global_step == 7
    with pytest.raises(TrainingError, match="dataloader_num_workers=2: an iterable train_dataset"):
        elastic(make(tmp_path, data=Stream(), max_steps=7, dataloader_num_workers=2)).train()


def test_a_data_set_smaller_than_a_batch_is_one_batch(tmp_path: Path) -> None:
    trainer = elastic(make(tmp_path, data=Subset(Texts(), range(5))))

    assert trainer.train().global_step == 2
