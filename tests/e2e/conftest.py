from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pool import Pool


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """A running server with eight slots."""
    server = Pool(tmp_path / "home")
    server.up()
    yield server
    server.close()


@pytest.fixture
def pace(tmp_path: Path) -> Path:
    """A file that says how long `paced.py` sleeps before every batch."""
    path = tmp_path / "pace"
    path.write_text("0.05")
    return path
