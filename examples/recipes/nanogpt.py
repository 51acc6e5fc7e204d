"""A small GPT in the manner of nanoGPT: batches at random places of one long text, and iterations without an end.

`get_batch` becomes a data set whose samples draw their place, and `--eval-interval` iterations an epoch, so that
`--max-iters` are a number of epochs. What a sample draws is seeded by its number and the epoch, so every iteration sees
other places, and any number of tasks the same. The text is made up.
"""

import argparse
import math

import torch
import torch.nn.functional as F
from pliant.train import Run
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Dataset

NUM_TOKENS = 12


class Windows(Dataset):
    """Windows at random places of a text, `num_windows` an epoch: instead of `get_batch`."""

    def __init__(self, tokens, block_size, num_windows):
        self.tokens, self.block_size, self.num_windows = tokens, block_size, num_windows

    def __len__(self):
        return self.num_windows

    def __getitem__(self, _index):
        start = int(torch.randint(len(self.tokens) - self.block_size, ()))
        window = self.tokens[start : start + self.block_size + 1]
        return window[:-1], window[1:]


class Block(nn.Module):
    def __init__(self, size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x):
        heads = [part.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(self.ln_1(x)).chunk(3, 2)]
        x = x + self.proj(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, block_size, size=32, num_layers=1, num_heads=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(NUM_TOKENS, size), nn.Embedding(block_size, size)
        self.blocks = nn.Sequential(*(Block(size, num_heads) for _ in range(num_layers)), nn.LayerNorm(size))
        self.head = nn.Linear(size, NUM_TOKENS, bias=False)

    def forward(self, tokens, targets):
        places = torch.arange(tokens.size(1), device=tokens.device)
        logits = self.head(self.blocks(self.wte(tokens) + self.wpe(places)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_text(num_tokens, seed):
    """Return a text of steps of one or two tokens, round and round."""
    return torch.randint(1, 3, (num_tokens,), generator=torch.Generator().manual_seed(seed)).cumsum(0) % NUM_TOKENS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=16, help="windows of an iteration, over all its micro-steps")
    parser.add_argument("--gradient-accumulation-steps", type=int, default=2)
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--max-iters", type=int, default=20)
    parser.add_argument("--eval-interval", type=int, default=5)
    parser.add_argument("--warmup-iters", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1337)

    model = GPT(args.block_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)

    def get_lr(it):
        if it < args.warmup_iters:
            return (it + 1) / (args.warmup_iters + 1)
        ratio = min(1.0, (it - args.warmup_iters) / (args.max_iters - args.warmup_iters))
        return 0.1 + 0.45 * (1.0 + math.cos(math.pi * ratio))

    train_set = Windows(make_text(20_000, seed=1), args.block_size, args.eval_interval * args.batch_size)
    val_set = Windows(make_text(4_000, seed=2), args.block_size, 64)
    run = Run(
        model,
        optimizer,
        train_set,
        batch_size=args.batch_size,
        accumulate=args.gradient_accumulation_steps,  # the inner loop over micro_step
        clip_norm=1.0,
        schedulers=[LambdaLR(optimizer, get_lr)],  # param_group["lr"] = get_lr(iter_num)
    )
    for _epoch in run.epochs(args.max_iters // args.eval_interval):  # while True: … if iter_num > max_iters: break
        model.train()
        for tokens, targets in run:
            run.step(model(tokens, targets))
        found = run.evaluate(val_set, lambda batch: {"loss": model(*batch)})  # estimate_loss()
        if run.leads:
            print(f"iter {run.num_steps_done}: train loss {run.last['loss']:.4f}, val loss {found['loss']:.4f}")


if __name__ == "__main__":
    main()
