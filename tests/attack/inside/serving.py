"""Reaches for what serving keeps: the gateway's files, socket and process, other endpoints' models and memory."""

import os
import socket
from pathlib import Path

from probe import Facts, first_of, got, home, of_processes, play, probe

_HERS = b"ADAS_SECRET"

for _name in ("token", "secret", "pliant.db"):
    probe(f"the server's {_name}")(home(_name))
for _name in ("log", "gateway.json", "lock"):
    probe(f"the gateway's {_name}")(home("gateway", _name))
probe("the key of its certificate")(home("tls", "key.pem"))


@probe("a list of the gateway's folder")
def list_gateway(facts: Facts) -> str:
    return f"shows {os.listdir(Path(facts['home'], 'gateway'))[0]}"


@probe("another's model, as its server keeps it")
def read_archive(facts: Facts) -> object:
    return first_of([lambda path=path: got(path) for path in facts["adas_archives"]])


@probe("another's model, as its kernel has it")
def read_code(facts: Facts) -> object:
    return got(Path(facts["adas_folder"], "code", "secret.txt"))


@probe("what another's kernel has written")
def read_result(facts: Facts) -> object:
    return first_of([lambda name=name: got(Path(facts["adas_folder"], name)) for name in ("result/secret", "secret")])


@probe("the temporary files of another's kernel")
def read_temporary(_: Facts) -> object:
    return got("/tmp/adas-kernel")


@probe("the shared memory of another's kernel")
def read_shared(_: Facts) -> object:
    return got("/dev/shm/adas-kernel")


for _name in ("environ", "maps", "mem"):
    probe(f"/proc/PID/{_name} of the gateway, the zygote, another's kernel")(of_processes(_name))


@probe("the sockets of the gateway and of another's kernel, by descriptor")
def descriptors(facts: Facts) -> object:
    pids = [facts["server"], *facts["victims"]]
    return first_of([lambda pid=pid: f"3 is {os.readlink(f'/proc/{pid}/fd/3')}" for pid in pids])


@probe("the socket of kernels, removed")
def remove_socket(facts: Facts) -> str:
    os.unlink(facts["socket"])
    return "removed"


@probe("the socket of kernels, moved")
def move_socket(facts: Facts) -> str:
    os.rename(facts["socket"], facts["socket"] + ".moved")
    return "moved"


@probe("a socket of its own in the place of the gateway's")
def take_place(facts: Facts) -> str:
    folder = os.open(os.path.dirname(facts["socket"]), os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{folder}/.gateway.new")
    finally:
        os.close(folder)
    os.rename(os.path.dirname(facts["socket"]) + "/.gateway.new", facts["socket"])
    return "taken"


@probe("the address of the server, written anew")
def write_address(facts: Facts) -> str:
    Path(facts["socket"]).with_name("server.json").write_text("{}")
    return "written"


@probe("the gateway's record, written anew")
def write_record(facts: Facts) -> str:
    Path(facts["home"], "gateway", "gateway.json").write_text("{}")
    return "written"


@probe("variables of the gateway, or of another's kernel, in its own memory")
def variables(_: Facts) -> str:
    found = [name for name in os.environ if name in ("PLIANT_GATEWAY_KEY", "PLIANT_KERNEL_TOKEN", "ADAS_SECRET")]
    with open("/proc/self/environ", "rb") as file:
        found += [name for name in ("PLIANT_GATEWAY_KEY", "ADAS_SECRET") if name.encode() in file.read()]
    return f"found {found[0]}" if found else "nothing"


play()
