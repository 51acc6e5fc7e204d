"""A kernel of another machine, and the gateway's process: all real, but for the other machine's view of the folder."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.entry.gateway_world import ADA, World, ask
from tests.entry.test_kernel import TIMEOUT_S, variables
from tests.serve.gateway.played import endpoint, version
from tests.serve.gateway.played_server import wait_until
from tests.serve.other_machine import make_certificate, see_from_elsewhere
from tests.serve.runner.fake_gateway import Listener

from pliant.api.trust import Trust
from pliant.core.serving import GatewayHello, KernelReady, Serve
from pliant.entry.gateway.arguments import read_arguments
from pliant.entry.gateway_process import GatewayProcess
from pliant.serve.gateway.kernel_socket import KERNEL_SOCKET, kernel_place_name
from pliant.serve.protocol.kernel_place import read_place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PROGRAM = (sys.executable, "-P", "-m", "pliant.entry.gateway")
MODEL = """
class Model:
    def predict(self, batch):
        return [{"kernel": "here", "twice": 2 * one["x"]} for one in batch]
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path, stack)


@contextmanager
def kernel(path: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a kernel to whom the gateway's socket has this path."""
    folder.mkdir()
    (folder / "serve.py").write_text(MODEL)
    env = variables(folder, _At(path), "python", "serve.py") | {"PLIANT_KERNEL_TOKEN": "token of job-1"}
    command = [sys.executable, "-m", "pliant.entry.kernel", "serve.py"]
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


class _At(Listener):
    """A socket that is somebody else's."""

    def __init__(self, path: Path) -> None:
        self.path = path


def start(world: World, host: str = "127.0.0.1", num: int = 1) -> tuple[GatewayProcess, Trust]:
    tls = make_certificate(world.home)
    gateway = world.gateway(
        program=PROGRAM, certificate=tls.certificate, key_file=tls.key, kernel_host=host, num_processes=num
    )
    gateway.ensure()
    return gateway, Trust(certificate=tls.trusted)


def infer(url: str, trust: Trust, x: int) -> httpx.Response:
    headers = {"Authorization": "Bearer s3cr3t"}
    body = json.dumps({"x": x}).encode()
    return httpx.post(
        f"{url}/dlim/v1/inference/digits", content=body, headers=headers, timeout=30, verify=trust.context()
    )


def test_a_kernel_of_another_machine_serves_and_comes_back_when_the_gateway_does(world: World) -> None:
    server = world.serve(
        greeting=(Serve(endpoints=(endpoint(version(job="job-1"), batch_size=2),)),), answers={"s3cr3t": ADA}
    )
    gateway, trust = start(world)
    address = world.server_file.parent
    hello = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
    first = wait_until(lambda: _place(address), "it says where it listens")
    path = see_from_elsewhere(address, world.home / "seen")
    with kernel(path, world.home / "model") as process:
        wait_until(lambda: server.of(KernelReady), "the kernel of another machine is ready")
        assert not _local_connections(process.pid)
        from_elsewhere = infer(hello.http_url, trust, 3)
        assert (from_elsewhere.status_code, from_elsewhere.json()) == (200, {"kernel": "here", "twice": 6})

        os.kill(hello.pid, signal.SIGKILL)
        again = wait_until(lambda: server.of(GatewayHello)[1:], "another one says hello")[0]
        wait_until(lambda: len(server.of(KernelReady)) > 1, "the kernel has come back")
        assert read_place(address / kernel_place_name(0)) != first
        assert infer(again.http_url, trust, 4).json()["twice"] == 8
        process.terminate()
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert "token of job-1" not in err + world.log()

    with kernel(address / KERNEL_SOCKET, world.home / "local") as process:
        wait_until(lambda: len(server.of(KernelReady)) > 2, "a kernel of this machine is ready")
        here = infer(again.http_url, trust, 3)
        assert (here.status_code, here.content) == (from_elsewhere.status_code, from_elsewhere.content)
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
    gateway.close()
    assert not (address / kernel_place_name(0)).exists()


def test_each_of_several_processes_takes_kernels_of_other_machines_at_its_own_port(world: World) -> None:
    server = world.serve(greeting=(Serve(endpoints=(endpoint(version(job="job-1")),)),), answers={"s3cr3t": ADA})
    start(world, num=2)
    address = world.server_file.parent
    wait_until(lambda: len(server.of(GatewayHello)) == 2, "both say hello")
    wait_until(lambda: _place(address, 0) and _place(address, 1), "both say where")
    assert len({read_place(address / kernel_place_name(number)).port for number in range(2)}) == 2
    with kernel(see_from_elsewhere(address, world.home / "seen", 2), world.home / "model"):
        wait_until(lambda: len(server.of(KernelReady)) == 2, "it is ready at both")


def test_where_no_machine_may_join_there_is_no_such_port(world: World) -> None:
    server = world.serve()
    world.gateway().ensure()
    hello = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
    assert ask(hello.http_url).status_code == 200
    assert not (world.server_file.parent / kernel_place_name(0)).exists()
    assert not any(one.startswith("--kernel") for one in world.options().arguments())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--kernel-host=10.0.0.5",), "give --certificate and --key as well"),
        (("--kernel-host=0.0.0.0", "--certificate=c", "--key=k"), "no machine can connect to that"),
        (("--kernel-host=10.0.0.5", "--kernel-port=65535", "--certificate=c", "--key=k"), "give 0 to"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: tuple[str], said: str
) -> None:
    with pytest.raises(SystemExit):
        read_arguments([f"--server-file={tmp_path}", f"--state={tmp_path}", *given], "key")
    assert said in capsys.readouterr().err


def _place(address: Path, number: int = 0) -> object:
    try:
        return read_place(address / kernel_place_name(number))
    except FileNotFoundError:
        return None


def _local_connections(pid: int) -> list[str]:
    """Return the UNIX sockets of a process."""
    known = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    held = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.append(os.readlink(file))
        except OSError:
            continue
    return [one for one in held if one.startswith("socket:[") and one[8:-1] in known]
