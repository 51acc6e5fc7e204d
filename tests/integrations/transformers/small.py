"""Small models and texts made here, and Trainers of them: what people write, in a few kilobytes, with no downloads."""

from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils.data import Dataset
from transformers.trainer_callback import ExportableState

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

VOCABULARY, PAD, IGNORED = 20, 0, -100
NUM_TEXTS = 44


class Texts(Dataset[Any]):
    """Texts of 3 to 11 tokens, each by its number."""

    def __init__(self, num_texts: int = NUM_TEXTS) -> None:
        self.num_texts = num_texts

    def __len__(self) -> int:
        return self.num_texts

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if index >= self.num_texts:
            raise IndexError(index)
        generator = torch.Generator().manual_seed(index)
        length = int(torch.randint(3, 12, (), generator=generator))
        return {"input_ids": torch.randint(1, VOCABULARY, (length,), generator=generator)}


def collate(texts: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Pad to the longest text of the batch; padding is no label."""
    width = max(len(text["input_ids"]) for text in texts)
    tokens = torch.stack([F.pad(text["input_ids"], (0, width - len(text["input_ids"]))) for text in texts])
    return {
        "input_ids": tokens,
        "attention_mask": (tokens != PAD).long(),
        "labels": tokens.masked_fill(tokens == PAD, IGNORED),
    }


def small_gpt(dropout: float = 0.0) -> GPT2LMHeadModel:
    set_seed(0)
    drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1, **drops
    )
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # as of every newer model; its first tokens are nobody's label then
    return model


def make(
    folder: Path | str,
    *,
    cls: Any = Trainer,
    dropout: float = 0.0,
    data: Any = None,
    callbacks: Any = None,
    model: Any = None,
    collator: Any = collate,
    **arguments: Any,
) -> Any:
    """Return a plain Trainer: global batches of 8 texts, six steps an epoch."""
    usual = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_train_epochs": 2,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
    }
    return cls(
        model=small_gpt(dropout) if model is None else model,
        args=TrainingArguments(str(folder), **{**usual, **arguments}),
        train_dataset=Texts() if data is None else data,
        eval_dataset=Texts(10),
        data_collator=collator,
        callbacks=callbacks,
    )


class Recorder(TrainerCallback):  # transformers is not read by mypy
    """Writes down which callbacks were called, and at which step."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("train begin", state.global_step))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("epoch begin", state.global_step))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("step begin", state.global_step))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("step end", state.global_step))

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("evaluate", state.global_step))

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("log", state.global_step))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("save", state.global_step))

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("epoch end", state.global_step))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.calls.append(("train end", state.global_step))


class Counter(TrainerCallback, ExportableState):
    """Counts the steps of the whole training, whoever computes them."""

    def __init__(self) -> None:
        self.num_steps = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.num_steps += 1

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"num_steps": self.num_steps}}


def weights(trainer: Any) -> list[torch.Tensor]:
    return [parameter.detach() for parameter in trainer.model.parameters()]


def difference(trainer: Any, other: Any) -> float:
    """Return the largest difference between the weights of two trainings."""
    return max(
        float((mine - theirs).abs().max()) for mine, theirs in zip(weights(trainer), weights(other), strict=True)
    )
