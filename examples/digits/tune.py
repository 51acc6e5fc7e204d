"""Train a network on scikit-learn's handwritten digits, and report after each epoch how good it is: for searches."""

import argparse

import torch
import torch.nn.functional as F
from plain import load_data, make_model
from pliant.train import Run


def validate(model, dataset):
    """Return the loss on samples that the training never sees."""
    images, labels = dataset.tensors
    device = next(model.parameters()).device
    with torch.no_grad():
        return F.cross_entropy(model(images.to(device)), labels.to(device)).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--width", type=int, default=32, help="channels; more take longer")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_set, val_set = load_data()
    model = make_model(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(args.momentum, 0.999))
    run = Run(model, optimizer, train_set, batch_size=args.batch_size, seed=args.seed)
    for epoch in run.epochs(args.epochs):
        for x, y in run:
            run.step(F.cross_entropy(model(x), y))
        val_loss = validate(model, val_set)
        run.log(val_loss=val_loss)
        print(f"epoch {epoch}: validation loss {val_loss:.4f}")


if __name__ == "__main__":
    main()
