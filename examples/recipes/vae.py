"""A variational autoencoder in the manner of pytorch/examples' vae: its loss is a sum over the batch, not a mean.

What became of the plain script's lines stands beside them. The images are made up, so that it runs anywhere.
"""

import argparse

import torch
import torch.nn.functional as F
from pliant.train import Run
from torch import nn, optim

SIDE = 8


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(SIDE * SIDE, 64)
        self.mean, self.log_var = nn.Linear(64, 4), nn.Linear(64, 4)
        self.decode = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, SIDE * SIDE), nn.Sigmoid())

    def forward(self, x):
        hidden = F.relu(self.encode(x.flatten(1)))
        mean, log_var = self.mean(hidden), self.log_var(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        return self.decode(z), mean, log_var


def loss_function(x, reconstructed, mean, log_var):
    """Return the sum over the samples of how far the images are apart, and how far the codes are from a normal one."""
    bce = F.binary_cross_entropy(reconstructed, x.flatten(1), reduction="sum")
    kld = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
    return bce + kld


def make_images(num_images, seed):
    """Return images of bright squares somewhere."""
    left, top = torch.randint(SIDE - 3, (2, num_images, 1, 1), generator=torch.Generator().manual_seed(seed))
    x, y = torch.arange(SIDE).reshape(1, 1, SIDE), torch.arange(SIDE).reshape(1, SIDE, 1)
    return ((x >= left) & (x < left + 3) & (y >= top) & (y < top + 3)).float()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = VAE().to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    train_set, test_set = make_images(1000, seed=1), make_images(200, seed=2)
    run = Run(model, optimizer, train_set, batch_size=args.batch_size)

    def measure(x):
        return {"loss": loss_function(x.to(device), *model(x.to(device))) / len(x)}  # evaluate takes means

    for epoch in run.epochs(args.epochs):
        model.train()
        for batch_idx, x in run.enumerate():
            x = x.to(device)
            loss = loss_function(x, *model(x))
            # The gradient is that of the sum over the whole batch, as in the plain loop.
            stepped = run.step(loss, reduction="sum")
            if stepped and run.leads and batch_idx % args.log_interval == 0:
                each = run.last["loss"] / args.batch_size  # loss.item() / len(data): the sum over the global batch
                print(f"Train Epoch: {epoch} ({100.0 * batch_idx / run.steps_per_epoch:.0f}%)\tLoss: {each:.6f}")
        found = run.evaluate(test_set, measure)
        if run.leads:
            print(f"====> Test set loss: {found['loss']:.4f}")


if __name__ == "__main__":
    main()
