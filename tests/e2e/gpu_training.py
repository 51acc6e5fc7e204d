"""A training on a GPU that writes what it computed: `WEIGHTS` gets a digest of the weights' bits."""

import argparse
import hashlib
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds of every step")
    args = parser.parse_args()
    device = torch.device("cuda")
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(640, 32, generator=generator)
    data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
    torch.manual_seed(1)
    layers = (torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 2))
    model = torch.nn.Sequential(*layers).to(device)
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), data, batch_size=64, mode="exact")
    for epoch in run.epochs(4):
        for inputs, labels in run:
            time.sleep(args.pace)
            run.step(torch.nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device)))
        print(f"epoch {epoch} on {torch.cuda.get_device_name()}: {run.last['loss']:.6f}", flush=True)
    bits = b"".join(value.cpu().numpy().tobytes() for value in model.state_dict().values())
    args.weights.write_text(hashlib.sha256(bits).hexdigest())


if __name__ == "__main__":
    main()
