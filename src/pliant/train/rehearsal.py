"""Imported by the zygote: what the first step of every process does once is done here, and all its tasks have it.

The first step of an optimizer imports modules of torch and looks up operators by their names, the first layers set up
the libraries that compute them: together 4 to 8 ms of a processor, which a task that joins a training takes while
others wait for it. Nothing here draws a random number, so that a script without a seed comes to the numbers that it
comes to alone; nothing computes a gradient, for which torch may start threads that no child would have; and where
torch was built for GPUs nothing is done at all, since an optimizer looks for them, and a process that has done so has
no children that can use them.
"""

import torch
from torch.nn import functional

_STEPPED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def _rehearse() -> None:
    parameter = torch.nn.Parameter(torch.zeros(4, 4))
    for kind in _STEPPED:
        parameter.grad = torch.zeros(4, 4)
        optimizer = kind([parameter], lr=0.1)
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        functional.conv2d(torch.zeros(2, 1, 8, 8), torch.zeros(2, 1, 3, 3))
        outputs = functional.linear(torch.zeros(4, 16), torch.zeros(16, 16), torch.zeros(16))
        functional.cross_entropy(torch.relu(outputs), torch.zeros(4, dtype=torch.long))


if not any((torch.version.cuda, torch.version.hip, torch.version.xpu)):
    _rehearse()
