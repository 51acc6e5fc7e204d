"""Answer what comes over UDP and TCP, IPv4 and IPv6, on port 7: a script for hosts that others look for.

It writes a line when it listens.
"""

import select
import socket
from contextlib import suppress
from typing import Final

PORT: Final = 7


def main() -> None:
    """Answer until killed."""
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    datagrams.bind(("::", PORT))
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
    streams: list[socket.socket] = []
    print("listens", flush=True)
    while True:
        for ready in select.select([datagrams, listener, *streams], (), ())[0]:
            if ready is datagrams:
                data, sender = datagrams.recvfrom(65536)
                with suppress(OSError):  # nobody is there
                    datagrams.sendto(data, sender)
            elif ready is listener:
                streams.append(listener.accept()[0])
            else:
                with suppress(OSError):
                    if data := ready.recv(65536):
                        ready.sendall(data)
                        continue
                streams.remove(ready)
                ready.close()


if __name__ == "__main__":
    main()
