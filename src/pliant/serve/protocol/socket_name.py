"""What the sockets are called at which gateways take kernels."""


def socket_name(first: str, number: int) -> str:
    """Return the name of the socket of a gateway.

    Args:
        first: that of gateway 0.
        number: of the gateway.

    >>> socket_name("gateway", 0), socket_name("gateway", 2)
    ('gateway', 'gateway-2')
    """
    return f"{first}-{number}" if number else first
