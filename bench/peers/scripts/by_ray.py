"""The training under Ray Train's elastic mode: `by_ray.py MODEL FOLDER_OF_STEP_LOGS STORAGE NUM_NODES`.

Starts a cluster of a head without CPUs and nodes of one CPU, and trains on two to four of them. Commands on standard
input change it: `add K` adds nodes at once, `drain K` takes away those added last. A checkpoint is reported every step,
into memory; the resize monitor looks every second instead of every minute.
"""

import itertools
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import ray
import ray.train
import ray.train.torch
import torch
from ray.cluster_utils import Cluster
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from bench.peers.scripts.workload import BATCH_SIZE, StepLog, build, data, optimizer_of

MONITOR_S = 1.0
HERE: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 150 << 20}
HEALTH = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
"""Much shorter than Ray's own, so that a lost node is noticed within seconds."""


def train(config: dict[str, Any]) -> None:
    """Train until the group is torn down: what a worker of Ray Train runs."""
    inner, step = build(config["model"]), 0
    optimizer = optimizer_of(inner)
    if (found := ray.train.get_checkpoint()) is not None:
        with found.as_directory() as folder:
            saved = torch.load(Path(folder) / "state.pt", weights_only=True)
        inner.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    model = ray.train.torch.prepare_model(inner, parallel_strategy_kwargs={"gradient_as_bucket_view": True})
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    loader = ray.train.torch.prepare_data_loader(DataLoader(data(), batch_size=BATCH_SIZE // size, shuffle=True))
    log = StepLog(Path(config["folder"]))
    for x, y in itertools.chain.from_iterable(itertools.repeat(loader)):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        step += 1
        with tempfile.TemporaryDirectory(dir=config["memory"]) as folder:
            checkpoint = None
            if rank == 0:
                state = {"model": inner.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state, Path(folder) / "state.pt")
                checkpoint = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({"step": step}, checkpoint=checkpoint)
        log.note(step, size=size, rank=rank)


def obey(cluster: Cluster, nodes: list[Any]) -> None:
    """Add and take away nodes as standard input says."""
    for line in sys.stdin:
        verb, number = line.split()
        for _ in range(int(number)):
            if verb == "add":
                nodes.append(cluster.add_node(wait=False, num_cpus=1, **HERE))
            else:
                cluster.remove_node(nodes.pop(), allow_graceful=True)


def main() -> None:
    model, folder, storage, num_nodes = sys.argv[1:]
    cluster = Cluster(initialize_head=True, head_node_args={**HERE, "num_cpus": 0, "_system_config": HEALTH})
    nodes = [cluster.add_node(num_cpus=1, **HERE) for _ in range(int(num_nodes))]
    ray.init(address=cluster.address, log_to_driver=False)
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"model": model, "folder": folder, "memory": storage},
        torch_config=ray.train.torch.TorchConfig(backend="gloo"),
        scaling_config=ray.train.ScalingConfig(num_workers=(1, 4), elastic_resize_monitor_interval_s=MONITOR_S),
        run_config=ray.train.RunConfig(
            name="peer",
            storage_path=storage,
            failure_config=ray.train.FailureConfig(max_failures=-1),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
        ),
    )
    threading.Thread(target=trainer.fit, daemon=True).start()
    obey(cluster, nodes)  # here, because a node can only be added by the main thread


if __name__ == "__main__":
    main()
