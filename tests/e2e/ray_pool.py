"""A pool on the nodes of a Ray cluster: the head is on the server's host, and a raylet on the other one."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.e2e.hosts_pool import SERVER, HostsPool
from tests.e2e.pool import PYTHON
from tests.hosts import Network

RAY = (PYTHON, "-m", "ray.scripts.scripts")
RAY_PORT = 6379
_START = ("--disable-usage-stats", "--num-cpus=0", "--num-gpus=0", "--object-store-memory=78643200")
_START_S = 120.0
_NOT_NEEDED = "raise ImportError"
"""In place of a module that each process of Ray's would import if it is there, as here for notebooks: that computes a
grammar for four seconds, and a raylet waits for its agents for fifteen."""
_TRIES = 3


class RayPool(HostsPool):
    """Nobody starts an agent here but Ray."""

    cluster = "auto"
    names: tuple[str, ...] = ("b",)
    tmpfs: Mapping[str, str] = MappingProxyType({"/tmp/ray": "128m", "/var/lib": "16m"})
    """Ray's sessions; what agents keep."""
    head_env: Mapping[str, str] = MappingProxyType({})
    """Further variables of Ray's head alone."""

    def __init__(self, home: Path, network: Network, **given: Any) -> None:
        super().__init__(home, network, **given)
        quick = home.parent / "quick"
        quick.mkdir()
        (quick / "rfc3987_syntax.py").write_text(_NOT_NEEDED)
        self.env["PYTHONPATH"] = f"{quick}{os.pathsep}{self.env['PYTHONPATH']}"

    def own_machine(self, name: str) -> list[str | Path]:
        return []  # Ray starts the agent there, too

    def start_head(self, *options: str) -> None:
        """Start Ray's head on the server's host."""
        head = ["--head", f"--port={RAY_PORT}", "--include-dashboard=false", "--include-log-monitor=false"]
        self._start_ray(SERVER, *head, *options, env=self.head_env)

    def start_node(self, name: str) -> None:
        """Start a node of Ray's on another host."""
        self._start_ray(name, f"--address={self.hosts[SERVER].address}:{RAY_PORT}")

    def kill_ray(self, name: str) -> None:
        """Kill all processes of Ray's on a host: its head, if that is there, raylet and actors."""
        for program in ("/ray/core/src/ray/", "/ray/_private/", "/ray/dashboard/", "^ray::", "^ray$"):
            self.hosts[name].run(["pkill", f"-{int(signal.SIGKILL)}", "-f", program], check=False)

    def agent_pid(self, name: str) -> int:
        """Return the number of the agent's process on a host, as the host counts."""
        found = self.hosts[name].run(["pgrep", "-f", "pliant.entry.agent"], check=False).stdout.split()
        return int(found[0]) if found else 0

    def agents_on(self, name: str) -> list[str]:
        """Return the names of the machines whose agents are processes of a host."""
        found = self.hosts[name].run(["pgrep", "-af", "pliant.entry.agent"], check=False).stdout.splitlines()
        words = [line.split() for line in found]
        return [line[line.index("--name") + 1] for line in words if "--name" in line]

    def ask_ray(self, program: str) -> str:
        """Return what a program prints that has connected to Ray, on the server's host."""
        begin = "import ray; ray.init(address='auto', namespace='test', log_to_driver=False, logging_level='ERROR')"
        done = self.hosts[SERVER].run([PYTHON, "-c", f"{begin}\n{program}"], env=self.env, timeout_s=_START_S)
        return done.stdout.strip().splitlines()[-1]

    def ray_log(self) -> str:
        return (self.home / "ray.log").read_text(errors="replace")

    def _start_ray(self, name: str, *options: str, env: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start Ray on a host; again, if this machine is so busy that Ray's own half minute for its start is over."""
        host = self.hosts[name]
        argv: list[str | Path] = [*RAY, "start", f"--node-ip-address={host.address}", *_START, *options]
        for _ in range(_TRIES):
            done = host.run(argv, env={**self.env, **env}, timeout_s=_START_S, check=False)
            if done.returncode == 0:
                return
            assert "timed out during startup" in f"{done.stdout}{done.stderr}", done
            self.kill_ray(name)
        raise AssertionError(f"Ray does not start on {name}: {done.stderr}")


class AutoscaledRayPool(RayPool):
    """Ray's autoscaler starts its nodes on the server's host: all have one address, and one host name."""

    names = ()

    def __init__(self, home: Path, network: Network, *, version: int, **given: Any) -> None:
        """Prepare; `version` is the autoscaler's, 1 or 2. Only the head is told it, and whoever asks finds it out."""
        super().__init__(home, network, **given)
        self.version = version
        self.env |= {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
        if version == 2:  # it knows the head, as all nodes, by the number that its provider gave it
            self.head_env = {
                "RAY_enable_autoscaler_v2": "1",
                "RAY_CLOUD_INSTANCE_ID": _HEAD_ID,
                "RAY_OVERRIDE_NODE_ID_FOR_TESTING": _HEAD_ID,
                "RAY_NODE_TYPE_NAME": _HEAD_TYPE,
            }

    def start_head(self, *options: str) -> None:
        """Start Ray's head, with an autoscaler."""
        self.hosts[SERVER].run(["ip", "route", "add", "default", "dev", "eth0"])  # Ray finds its address by it
        path = self.home.parent / "autoscaler.json"
        path.write_text(json.dumps(_autoscaler(f"{self.hosts[SERVER].address}:{RAY_PORT}")))
        super().start_head(f"--autoscaling-config={path}", *options)

    def num_nodes(self, resource: str) -> int:
        """Return how many nodes Ray has with a resource."""
        return int(
            self.ask_ray(f"print(sum(one['Alive'] and {resource!r} in one['Resources'] for one in ray.nodes()))")
        )


_HEAD_ID = "f" * 51 + "00000"
_HEAD_TYPE = "ray.head.default"


def _autoscaler(address: str) -> dict[str, Any]:
    """Return a configuration of Ray's autoscaler, whole, with two kinds of machines.

    The provider is Ray's own for tests, by the name of its class: by its short name the autoscaler's second version
    reads a file with defaults that Ray's package lacks.
    """
    provider = {
        "type": "external",
        "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
        "gcs_address": address,
        "head_node_id": _HEAD_ID,
        "launch_multiple": True,
        "use_node_id_as_ip": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    }
    kinds = {
        name: {
            "resources": {"CPU": 0, f"pliant_{name}": 1, "object_store_memory": 78_643_200},
            "node_config": {},
            "min_workers": 0,
            "max_workers": 2,
        }
        for name in ("small", "gpu")
    }
    empty = ("docker", "auth", "head_node", "worker_nodes", "file_mounts")
    commands = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    return {
        "cluster_name": "test",
        "max_workers": 4,
        "provider": provider,
        "head_node_type": _HEAD_TYPE,
        "available_node_types": {
            _HEAD_TYPE: {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            **kinds,
        },
        "idle_timeout_minutes": 0.05,
        "upscaling_speed": 9999.0,
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
        **{one: {} for one in empty},
        **{f"{one}_commands": [] for one in commands},
    }
