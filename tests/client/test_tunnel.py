"""The client's end of a tunnel, in a process of its own: who has it on a terminal sees what runs there, and no more."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.played import Played

OPEN = """
import sys
from pliant.api.tunnel import ShellRequest
from pliant.client import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    stream = client.open_shell("job-1", ShellRequest())
    try:
        raise ConnectionError("no close frame received")
    except ConnectionError:
        stream._connection.logger.error("keepalive ping failed", exc_info=True)
    stream.close()
"""


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    server = Played(tmp_path)
    yield server
    server.close()


def test_what_the_library_says_of_a_connection_that_fails_is_not_on_the_terminal(played: Played) -> None:
    assert played.submit(fixed=True).status_code == 201
    played.tick(1.0)

    opened = subprocess.run(
        [sys.executable, "-c", OPEN, played.url, played.token], capture_output=True, text=True, timeout=60, check=False
    )

    assert (opened.returncode, opened.stdout, opened.stderr) == (0, "", "")
