"""What gateways say, taken to those whom it concerns: control hears of kernels and load, the keeper of what is ready.

It keeps where the newest gateway listens. Called in a thread of the links, one message after the other.
"""

from collections.abc import Callable

from pliant.control.kinds.endpoint.kernels import KernelRequests
from pliant.core.serving import GatewayHello, KernelHung, KernelReady, Load


class GatewayNews:
    """Takes what gateways say; implements `pliant.server.gateways.ServingListener`.

    Args:
        kernels: the use cases of control about kernels.
        wake: makes the keeper of endpoints look.
    """

    def __init__(self, kernels: KernelRequests, wake: Callable[[], None]) -> None:
        self._kernels = kernels
        self._wake = wake
        self._hello: GatewayHello | None = None

    @property
    def place(self) -> GatewayHello | None:
        """What the gateway said of itself, and where people reach it; None while there is none."""
        return self._hello

    def gateway_ready(self, hello: GatewayHello) -> None:
        """Take note where a gateway listens, and which of its kernels are ready."""
        self._hello = hello
        for task_id in hello.ready:
            self._kernels.kernel_ready(KernelReady(task_id=task_id))
        self._wake()

    def kernel_ready(self, message: KernelReady) -> None:
        """Take note that a kernel takes requests."""
        self._kernels.kernel_ready(message)
        self._wake()

    def kernel_hung(self, message: KernelHung) -> None:
        """Have a kernel ended that does not answer."""
        self._kernels.kernel_hung(message)

    def take_load(self, message: Load) -> None:
        """Take in how much there is to do."""
        self._kernels.take_load(message)

    def gateway_gone(self) -> None:
        """Keep where it listened: it connects again as soon as it can, and people ask it meanwhile."""
        self._wake()
