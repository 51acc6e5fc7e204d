"""What gateways say, taken to those whom it concerns: control hears of kernels and load, the keeper of what is ready.

A server may have several gateways, which all serve the same. What they report of load is made one (`gateway_loads`);
a kernel is ready as soon as one of them says so. It keeps where they listen. Called in a thread of the links, one
message after the other.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from pliant.control.kinds.endpoint.kernels import KernelRequests
from pliant.core.job import TaskId
from pliant.core.serving import GatewayHello, KernelHung, KernelReady, Load
from pliant.server.gateway_loads import GatewayLoads

_MAX_HUNG: Final = 100


class GatewayNews:
    """Takes what gateways say; implements `pliant.server.gateways.ServingListener`.

    Args:
        kernels: the use cases of control about kernels.
        wake: makes the keeper of endpoints look.
        tell_kernels: makes known where the kernels of other machines reach a gateway.
    """

    def __init__(
        self,
        kernels: KernelRequests,
        wake: Callable[[], None],
        tell_kernels: Callable[[GatewayHello], None] = lambda _hello: None,
    ) -> None:
        self._kernels = kernels
        self._wake = wake
        self._tell_kernels = tell_kernels
        self._hellos: dict[str, GatewayHello] = {}
        """Of those that are connected."""
        self._places: tuple[GatewayHello, ...] = ()
        self._loads = GatewayLoads()
        self._hung: OrderedDict[TaskId, str] = OrderedDict()
        """The newest kernels that do not answer, and which gateway said it first."""

    @property
    def places(self) -> tuple[GatewayHello, ...]:
        """What gateways said of themselves, and where people reach them: one for each machine, the first by number.

        The server's own machine comes first. When none is connected, it is what was so last: they connect again as
        soon as they can, and people ask them meanwhile.
        """
        return self._places

    def gateway_ready(self, name: str, hello: GatewayHello) -> None:
        """Take note where a gateway listens, and which of its kernels are ready."""
        self._loads.connect(name, hello.pid)
        self._hellos[name] = hello
        self._tell_kernels(hello)
        self._choose_places()
        for task_id in hello.ready:
            self._kernels.kernel_ready(KernelReady(task_id=task_id))
        self._wake()

    def kernel_ready(self, name: str, message: KernelReady) -> None:  # noqa: ARG002 (whoever says so)
        """Take note that a kernel takes requests."""
        self._kernels.kernel_ready(message)
        self._wake()

    def kernel_hung(self, name: str, message: KernelHung) -> None:
        """Have a kernel ended that does not answer; all gateways notice it, and one of them is enough."""
        if self._hung.get(message.task_id, name) != name:
            return
        self._kernels.kernel_hung(message)
        self._hung[message.task_id] = name
        if len(self._hung) > _MAX_HUNG:
            self._hung.popitem(last=False)

    def take_load(self, name: str, message: Load) -> None:
        """Take in how much there is to do."""
        self._kernels.take_load(message, partial(self._loads.merge, name))

    def gateway_gone(self, name: str) -> None:
        """Count what waits there no longer."""
        self._loads.disconnect(name)
        self._hellos.pop(name, None)
        self._choose_places()
        self._wake()

    def _choose_places(self) -> None:
        first: dict[str, GatewayHello] = {}
        for hello in sorted(self._hellos.values(), key=lambda one: one.number):
            first.setdefault(hello.machine, hello)
        if first:
            self._places = tuple(first.values())
