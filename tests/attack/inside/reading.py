"""Reads what is not its own, by path, in every way there is to name a file."""

import os
from pathlib import Path

from probe import Facts, first_of, got, home, of_processes, play, probe

OWN = Path(os.environ["RESULT_DIR"])

for _name in ("token", "secret", "pliant.db"):
    probe(f"the server's {_name}")(home(_name))


@probe("another's result")
def read_result(facts: Facts) -> object:
    return got(facts["victim_folder"] + "/result/secret.txt")


@probe("another's code")
def read_code(facts: Facts) -> object:
    return got(facts["victim_folder"] + "/code/victim.py")


@probe("another's temporary file")
def read_temporary(_: Facts) -> object:
    return first_of([lambda: got("/tmp/adas-secret"), lambda: got("/var/tmp/adas-secret")])


@probe("another's shared memory")
def read_shared(_: Facts) -> object:
    return got("/dev/shm/adas-secret")


@probe("a list of the server's folder")
def list_home(facts: Facts) -> str:
    return foreign(facts["home"], {"token", "secret", "pliant.db", "uploads"})


@probe("a list of the jobs")
def list_jobs(facts: Facts) -> str:
    return foreign(facts["home"] + "/jobs", {facts["victim"]})


@probe("a list of another's folder")
def list_victim(facts: Facts) -> str:
    return foreign(facts["victim_folder"] + "/result", {"secret.txt"})


def foreign(folder: str, names: set[str]) -> str:
    """Return which of these names a folder shows; a folder that was put over it shows none."""
    if not (found := sorted(names.intersection(os.listdir(folder)))):
        raise PermissionError
    return f"shows {', '.join(found)}"


@probe("through a link of its own")
def by_link(facts: Facts) -> object:
    link = OWN / "link"
    link.symlink_to(facts["home"] + "/token")
    try:
        return got(str(link))
    finally:
        link.unlink()


@probe("through a hard link of its own")
def by_hard_link(facts: Facts) -> object:
    link = OWN / "hard"
    os.link(facts["home"] + "/token", link)
    try:
        return got(str(link))
    finally:
        link.unlink()


@probe("by moving it here")
def by_rename(facts: Facts) -> object:
    os.rename(facts["victim_folder"] + "/result/secret.txt", OWN / "moved")
    return got(str(OWN / "moved"))


@probe("upwards from its own folder")
def upwards(facts: Facts) -> object:
    return got(os.path.join(os.path.relpath(facts["home"], OWN.resolve()), "token"))


@probe("by a descriptor without rights, opened again")
def by_path_descriptor(facts: Facts) -> object:
    descriptor = os.open(facts["home"] + "/token", os.O_PATH)
    return got(f"/proc/self/fd/{descriptor}")


@probe("through the server's root folder")
def by_root(facts: Facts) -> object:
    return got(f"/proc/{facts['server']}/root{facts['home']}/token")


@probe("through another task's working folder")
def by_cwd(facts: Facts) -> object:
    return first_of([lambda pid=pid: got(f"/proc/{pid}/cwd/victim.py") for pid in facts["victims"]])


for _name in ("environ", "maps", "mem"):
    probe(f"/proc/PID/{_name}")(of_processes(_name))


@probe("/proc/PID/fd")
def descriptors(facts: Facts) -> object:
    pids = [facts["server"], *facts["zygote"], *facts["victims"]]
    return first_of([lambda pid=pid: f"1 is {os.readlink(f'/proc/{pid}/fd/1')}" for pid in pids])


@probe("a file in the server's folder")
def write_home(facts: Facts) -> str:
    (Path(facts["home"]) / "planted").write_text("x")
    return "written"


@probe("a file in another's folder")
def write_victim(facts: Facts) -> str:
    (Path(facts["victim_folder"]) / "planted").write_text("x")
    return "written"


@probe("other rights of the server's token")
def change_mode(facts: Facts) -> str:
    os.chmod(facts["home"] + "/token", 0o644)
    return "changed"


@probe("another time of the server's token")
def change_time(facts: Facts) -> str:
    os.utime(facts["home"] + "/token", (0, 0))
    return "changed"


play()
