"""A classifier in the manner of pytorch/examples' mnist: log lines by batches, a test after every epoch, StepLR.

What became of the plain script's lines stands beside them. The images are made up, so that it runs anywhere.
"""

import argparse

import torch
import torch.nn.functional as F
from pliant.train import Run
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(8 * 7 * 7, 32)
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        x = self.dropout(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))
        return F.log_softmax(self.out(F.relu(self.hidden(x))), dim=1)


def make_images(num_images, seed):
    """Return images of 10 classes: a pattern of each class under noise."""
    patterns = torch.randn(10, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (num_images,), generator=generator)
    return TensorDataset(patterns[labels] + torch.randn(num_images, 1, 16, 16, generator=generator), labels)


def train(args, model, device, run, epoch):
    model.train()
    for batch_idx, (data, target) in run.enumerate():  # enumerate(train_loader)
        data, target = data.to(device), target.to(device)
        output = model(data)
        loss = F.nll_loss(output, target)
        stepped = run.step(loss)  # optimizer.zero_grad(), loss.backward(), optimizer.step()
        if stepped and run.leads and batch_idx % args.log_interval == 0:
            done = batch_idx * run.batch_size  # batch_idx * len(data): that is a part of the batch
            percent = 100.0 * batch_idx / run.steps_per_epoch  # len(train_loader)
            print(f"Train Epoch: {epoch} [{done}/{args.num_images} ({percent:.0f}%)]\tLoss: {run.last['loss']:.6f}")


def test(model, device, run, test_set):
    def measure(batch):
        data, target = batch[0].to(device), batch[1].to(device)
        output = model(data)
        return {"loss": F.nll_loss(output, target), "accuracy": (output.argmax(1) == target).float().mean()}

    found = run.evaluate(test_set, measure)  # model.eval(), torch.no_grad() and the loop over test_loader
    run.log(test_loss=found["loss"], test_accuracy=found["accuracy"])
    if run.leads:
        print(f"Test set: Average loss: {found['loss']:.4f}, Accuracy: {100.0 * found['accuracy']:.0f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--log-interval", type=int, default=4)
    parser.add_argument("--num-images", type=int, default=600)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    train_set, test_set = make_images(args.num_images, seed=1), make_images(200, seed=2)
    run = Run(model, optimizer, train_set, batch_size=args.batch_size, state={"scheduler": scheduler})
    for epoch in run.epochs(args.epochs):  # range(args.epochs)
        train(args, model, device, run, epoch)
        test(model, device, run, test_set)
        scheduler.step()


if __name__ == "__main__":
    main()
