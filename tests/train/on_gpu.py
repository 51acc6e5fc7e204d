"""What the tests of a GPU run in processes of their own."""

import signal
from typing import Any

import torch
from torch.utils.data import TensorDataset

from pliant.core.job import Mode
from pliant.train import Run
from pliant.train.context import find_context

NUM_SAMPLES, BATCH, PARTS = 200, 48, 4


def train(*, mode: Mode, autocast: bool, own_gpu: bool = False) -> dict[str, Any]:
    """Train two epochs on a GPU; return what came out of it and what it took there."""
    signal.alarm(300)
    device = torch.device("cuda", 0)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.Tanh(), torch.nn.Linear(64, 4)
    )
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    x = torch.randn(NUM_SAMPLES, 32, generator=generator)
    data = TensorDataset(x, (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())
    if own_gpu:
        device = torch.device("cuda", _rank())
        torch.cuda.set_device(device)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run = Run(model, optimizer, data, batch_size=BATCH, mode=mode, virtual_workers=PARTS)
    for _ in run.epochs(2):
        for inputs, labels in run:
            with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                outputs = model(inputs.to(device))
            run.step(torch.nn.functional.cross_entropy(outputs.float(), labels.to(device)))
    group = run._engine.membership.group
    return {
        "weights": [value.double().cpu().flatten().tolist() for value in model.state_dict().values()],
        "claim": run.claim,
        "carried by": type(group.device_backend).__name__,
        "note": group.note,
        "bytes": torch.cuda.memory_allocated(device),
    }


def _rank() -> int:
    return int(str(find_context().membership.task_id).rpartition(".")[2])
