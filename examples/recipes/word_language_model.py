"""A language model in the manner of pytorch/examples' word_language_model, with an LSTM.

The plain script cuts its text into a few long columns and carries the LSTM's state from one batch of them to the next.
Here every sample is a sequence of its own, and the state begins at zero in each: a batch of Pliant has no batch before
it, since another task may have computed that. Longer sequences (`--bptt`) make up for it. The text is made up.
"""

import argparse
import math

import torch
from pliant.train import Run
from torch import nn
from torch.utils.data import Dataset

NUM_WORDS = 40


class Sequences(Dataset):
    """The text in consecutive sequences: instead of `batchify` and `get_batch`."""

    def __init__(self, words, bptt):
        self.words, self.bptt = words, bptt

    def __len__(self):
        return (len(self.words) - 1) // self.bptt

    def __getitem__(self, index):
        start = index * self.bptt
        return self.words[start : start + self.bptt], self.words[start + 1 : start + self.bptt + 1]


class RNNModel(nn.Module):
    def __init__(self, size=32, dropout=0.2):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(NUM_WORDS, size)
        self.rnn = nn.LSTM(size, size, batch_first=True)
        self.decoder = nn.Linear(size, NUM_WORDS)

    def forward(self, words):
        output, _hidden = self.rnn(self.drop(self.encoder(words)))  # from zero: no `hidden` comes in or goes out
        return self.decoder(self.drop(output)).flatten(0, 1)


def make_text(num_words, seed):
    """Return words of which each but every fifth follows from the one before it."""
    generator = torch.Generator().manual_seed(seed)
    words = [0]
    for place in range(1, num_words):
        draw = int(torch.randint(NUM_WORDS, (1,), generator=generator))
        words.append(draw if place % 5 == 0 else (7 * words[-1] + 3) % NUM_WORDS)
    return torch.tensor(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=20, help="sequences of one optimizer step")
    parser.add_argument("--bptt", type=int, default=35)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=10.0)
    parser.add_argument("--clip", type=float, default=0.25)
    args = parser.parse_args()
    torch.manual_seed(1111)

    model = RNNModel()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)  # p.data.add_(p.grad, alpha=-lr)
    annealing = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)  # lr /= 4.0
    train_set, val_set = Sequences(make_text(8000, seed=1), args.bptt), Sequences(make_text(1000, seed=2), args.bptt)
    run = Run(
        model,
        optimizer,
        train_set,
        batch_size=args.batch_size,
        clip_norm=args.clip,  # torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        state={"annealing": annealing},  # best_val_loss is in it
    )
    for epoch in run.epochs(args.epochs):
        model.train()
        for words, targets in run:
            run.step(criterion(model(words), targets.flatten()))
        found = run.evaluate(val_set, lambda batch: {"loss": criterion(model(batch[0]), batch[1].flatten())})
        annealing.step(found["loss"])
        if run.leads:
            print(f"| epoch {epoch} | valid loss {found['loss']:5.2f} | valid ppl {math.exp(found['loss']):8.2f}")


if __name__ == "__main__":
    main()
