"""A Trainer of Hugging Face whose speed a test sets: before every part it sleeps as the file PACE says."""

import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from pliant.integrations.transformers import elastic
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

PAD, IGNORED = 0, -100


def texts(num_texts: int) -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(3, 12, (num_texts,), generator=generator).tolist()
    return [{"input_ids": torch.randint(1, 20, (length,), generator=generator)} for length in lengths]


def collate(batch: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    width = max(len(text["input_ids"]) for text in batch)
    tokens = torch.stack([F.pad(text["input_ids"], (0, width - len(text["input_ids"]))) for text in batch])
    labels = tokens.masked_fill(tokens == PAD, IGNORED)
    return {"input_ids": tokens, "attention_mask": (tokens != PAD).long(), "labels": labels}


class Paced(Trainer):  # type: ignore[misc]  # transformers is not read by mypy
    """Sleeps before every part."""

    def training_step(self, *args: Any, **named: Any) -> torch.Tensor:
        if sys.argv[1:]:
            time.sleep(float(Path(sys.argv[1]).read_text()))
        found: torch.Tensor = super().training_step(*args, **named)
        return found


def main() -> None:
    set_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=20, attention_dropout=0.1, pad_token_id=PAD, **sizes))
    arguments = TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        num_train_epochs=10,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        learning_rate=1e-2,
        disable_tqdm=True,
        use_cpu=True,
    )
    data = {"train_dataset": texts(80), "eval_dataset": texts(9), "data_collator": collate}
    trainer = elastic(Paced(model=model, args=arguments, **data))
    trainer.train()
    print(f"ended at {trainer.state.global_step} with {len(trainer.state.log_history)} logs", flush=True)


if __name__ == "__main__":
    main()
