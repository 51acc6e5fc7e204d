"""Several hosts on one machine, for tests: with faults of their network, and their sudden death.

A host is a set of namespaces (network, processes, mounts, host name, IPC), with an address on a bridge that only its
network has. All files are those of the machine, at the same paths, but for what `Host` lists: a folder of `tmp_path` is
a file system that all hosts share. Programs run there as root.

    def test_that_a_cut_is_survived(network: Network, tmp_path: Path) -> None:   # the fixture, see below
        a, b = network.add("a"), network.add("b", tmpfs={"/mnt": "8m"})
        server = a.popen([sys.executable, "-m", "http.server", "--bind", a.address], output=tmp_path / "server")
        assert b.run(["curl", "http://a:8000/"]).stdout      # processes of hosts know all hosts by name
        with network.cut(b):                                 # b sees nothing of it
            ...
        with network.lose(b, 0.05), network.delay(b, 0.05):  # faults add up; `network.heal()` heals all
            ...
        with b.inside():                                     # what this thread connects to, it connects to from b
            socket.create_connection((a.address, 8000))
        b.kill()                                             # all its processes; `silently=True`: its power fails
        b.restart()                                          # same name and address, no process, empty /dev/shm
        server.kill(signal.SIGTERM)
        assert server.wait() == -signal.SIGTERM

`server.pid` is the process's number on this machine. Processes are not children of the test: a host's first process
reaps them. Inside, each host counts its processes from 1. The boot id (`/proc/sys/kernel/random/boot_id`), the clocks,
`/sys` and the cgroups are those of the machine.
A neighbour that was looked for in vain is looked for again after a second: for so long a network that was healed can
still seem cut.

A fixture begins with `require_hosts()`: where no hosts can be had, its tests are skipped with the reason; in CI they
fail.

    @pytest.fixture
    def network() -> Iterator[Network]:
        require_hosts()
        with Network() as made:
            yield made
"""

from tests.hosts.availability import available, require_hosts
from tests.hosts.host import Host
from tests.hosts.namespaces import HostProcess
from tests.hosts.network import Fault, Network

__all__ = ["Fault", "Host", "HostProcess", "Network", "available", "require_hosts"]
