import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def port() -> Iterator[int]:
    """Name a port that nobody else can take while no server listens there."""
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", 0))
        yield mine.getsockname()[1]
