"""Train a small GPT on sums such as 17+25=42 with Hugging Face's Trainer; nothing is downloaded.

python train.py                      # alone
pliant submit train.py --max 4       # the same bits
"""

import argparse

import torch
from pliant.integrations.transformers import elastic
from torch.utils.data import Dataset

from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

SIGNS = "_0123456789+=."
PAD, IGNORED = 0, -100


class Sums(Dataset):
    """Every sum of two numbers below 100, with its result backwards, as it is added up."""

    def __init__(self, is_test):
        pairs = torch.cartesian_prod(torch.arange(100), torch.arange(100))
        is_chosen = torch.rand(len(pairs), generator=torch.Generator().manual_seed(0)) < 0.02
        self.pairs = pairs[is_chosen if is_test else ~is_chosen].tolist()

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        a, b = self.pairs[index]
        return f"{a}+{b}={str(a + b)[::-1]}."


def collate(texts):
    """Pad, and let the model learn the result only."""
    width = max(map(len, texts))
    tokens = torch.tensor([[SIGNS.index(sign) for sign in text.ljust(width, "_")] for text in texts])
    is_result = (tokens == SIGNS.index("=")).cumsum(1).bool() & (tokens != SIGNS.index("=")) & (tokens != PAD)
    labels = tokens.masked_fill(~is_result, IGNORED)
    return {"input_ids": tokens, "attention_mask": (tokens != PAD).long(), "labels": labels}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--max-steps", type=int, default=-1)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    set_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(SIGNS), max_position_embeddings=16, pad_token_id=PAD, **sizes))
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            "out",
            per_device_train_batch_size=64,
            learning_rate=args.lr,
            num_train_epochs=args.epochs,
            max_steps=args.max_steps,
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=20,
            remove_unused_columns=False,
            disable_tqdm=True,
        ),
        train_dataset=Sums(is_test=False),
        eval_dataset=Sums(is_test=True),
        data_collator=collate,
    )
    trainer = elastic(trainer)  # the one line
    trainer.train()
    print(f"loss of sums that it has not seen: {trainer.evaluate()['eval_loss']:.4f}")


if __name__ == "__main__":
    main()
