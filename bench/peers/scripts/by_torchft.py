"""The training under torchft: `by_torchft.py MODEL FOLDER_OF_STEP_LOGS SHARE TIMEOUT_S`, one replica of one worker.

As its `train_ddp.py`: Manager, its DDP (mended), its optimizer, state from a healthy peer over HTTP. Every replica
computes `SHARE` samples whatever the number of replicas is (`WorldSizeMode.DYNAMIC`, the default): the batch changes.
"""

import itertools
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch._C._distributed_c10d import GradBucket, TCPStore
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

from bench.peers.scripts.workload import StepLog, build, data, optimizer_of


class SurvivingDDP(DistributedDataParallel):  # type: ignore[misc]
    """torchft's DDP, whose hook in 0.2.0 fails an assertion when a reduction over gloo failed: every survivor dies.

    This one goes on, as the manager wants: it knows of the failure, and the step is not committed.
    """

    @staticmethod
    def _comm_hook(state: Manager, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        state.allreduce(bucket.buffer()).wait()
        reduced: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        reduced.set_result(bucket.buffer())
        return reduced


def main() -> None:
    inner = build(sys.argv[1])
    inner_optimizer = optimizer_of(inner)

    def load(state: dict[str, Any]) -> None:
        inner.load_state_dict(state["model"])
        inner_optimizer.load_state_dict(state["optimizer"])

    def save() -> dict[str, Any]:
        return {"model": inner.state_dict(), "optimizer": inner_optimizer.state_dict()}

    # torchrun would keep this store in its agent; without it a replica group is one process
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=float(sys.argv[4]))),
        min_replica_size=1,
        load_state_dict=load,
        state_dict=save,
        replica_id=f"replica-{os.getpid()}-",
        timeout=timedelta(seconds=20),
        store_addr=store.host,
        store_port=store.port,
        hostname="127.0.0.1",
    )
    model = SurvivingDDP(manager, inner)
    optimizer = Optimizer(manager, inner_optimizer)
    loader = DataLoader(data(), batch_size=int(sys.argv[3]), shuffle=True, drop_last=True)
    log = StepLog(Path(sys.argv[2]))
    for x, y in itertools.chain.from_iterable(itertools.repeat(loader)):
        before = manager.current_step()
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if manager.current_step() > before:
            size = manager.num_participants()
            log.note(manager.current_step(), size=size, rank=manager.participating_rank() or 0)


if __name__ == "__main__":
    main()
