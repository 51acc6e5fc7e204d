"""Where kernels reach gateways of other machines: files that the server writes, since those may see copies alone.

A gateway of another machine says in its hello where kernels connect, and by which certificate they know it. All
machines read the folder of these files, which is shared or copied; gateways of the server's own machine write theirs
themselves. What a gateway says is a stranger's word: what is no place is logged and left out.
"""

import logging
from pathlib import Path
from typing import Final

from pliant.core.serving import GatewayHello, KernelEntry
from pliant.files.folder import write_whole
from pliant.serve.gateway.kernel_socket import kernel_place_name
from pliant.serve.protocol.frames import MAX_GATEWAYS
from pliant.serve.protocol.kernel_place import KernelPlace, is_place
from pliant.serve.protocol.pem import only_certificate

_log = logging.getLogger(__name__)

_MODE: Final = 0o644


class KernelPlaceFiles:
    """The files of the gateways of other machines. Files of numbers that no gateway can have are removed at once.

    Args:
        folder: where they lie, beside the sockets.
        others: the numbers of gateways on other machines, which come after those of the server's own.
    """

    def __init__(self, folder: Path, others: range) -> None:
        self._folder = folder
        self._others = others
        for number in range(others.stop, MAX_GATEWAYS):
            self._path(number).unlink(missing_ok=True)

    def note(self, hello: GatewayHello) -> None:
        """Let kernels know what a gateway of another machine says; never raises because of what it says."""
        if not hello.machine or hello.kernels is None:
            return
        try:
            content = self._place_of(hello.number, hello.kernels).to_json()
        except ValueError as error:
            _log.warning("kernels are not told of the gateway %d on %s: %s", hello.number, hello.machine, error)
            return
        path = self._path(hello.number)
        try:
            if not path.exists() or path.read_bytes() != content:
                write_whole(path, content, durable=False, mode=_MODE)
        except OSError as error:
            _log.error("%s cannot be written; kernels of other machines do not find that gateway: %s", path, error)

    def _place_of(self, number: int, said: KernelEntry) -> KernelPlace:
        """Raises ValueError: it cannot be one."""
        if number not in self._others:
            known = f"{self._others.start} to {self._others.stop - 1}" if self._others else "none"
            raise ValueError(f"those of other machines have the numbers {known}")
        place = KernelPlace(
            host=said.host,
            port=said.port,
            server_name=said.server_name,
            certificate=only_certificate(said.certificate) if said.certificate else None,
        )
        if not is_place(place) or not place.host.isprintable():
            raise ValueError(f"{place!r:.200} is no place to connect to")
        return place

    def _path(self, number: int) -> Path:
        return self._folder / kernel_place_name(number)
