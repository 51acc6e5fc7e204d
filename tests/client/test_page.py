"""The page about the client is true: its example runs against a real server, and its table has every method."""

import builtins
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

import pliant.client
from pliant.client.methods import PARTS, rows

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
SCRIPT = """
import os, sys
import torch
from pliant.train import Run
print(os.environ["GREETING"], sys.argv[1:], flush=True)
model = torch.nn.Linear(1, 1)
data = torch.utils.data.TensorDataset(torch.zeros(8, 1), torch.zeros(8, 1))
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=8)
for epoch in run.epochs(int(sys.argv[2])):
    for x, y in run:
        run.step(((model(x) - y) ** 2).mean())
"""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(tmp_path / "home", slots=2)
    pool.up()
    yield pool
    pool.close()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_example_runs(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    for name in ("PLIANT_URL", "PLIANT_TOKEN", "PLIANT_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLIANT_HOME", str(pool.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    with redirect_stdout(io.StringIO()) as out:
        exec(compile(example, str(PAGE), "exec"), {})

    printed = out.getvalue().splitlines()
    assert printed[0] == "hello ['--epochs', '2']"
    assert any(line.startswith("completed - ") for line in printed)
    assert any("model/model.pt" in line for line in printed)
    assert "max_task" in printed[-1]
    assert "is 'max_tasks' meant?" in printed[-1]
    assert (tmp_path / "result" / "model" / "model.pt").is_file()


def test_the_table_has_every_method_with_its_first_sentence() -> None:
    (table,) = re.findall(r"client\.methods -->\n\n(.*)\n<!-- until here -->", PAGE.read_text(), re.DOTALL)

    assert table.strip().splitlines() == list(rows()), "run: python -m pliant.client.methods"


def test_every_method_says_what_it_does() -> None:
    assert [row for row in rows() if row.endswith("|  |")] == []
    assert len(list(rows())) > 90


def test_the_parts_of_a_client_are_all_in_the_table() -> None:
    with pliant.client.Client("http://127.0.0.1:9", "t") as client:
        parts = {f"client.{name}": type(part) for name, part in vars(client).items() if not name.startswith("_")}
    assert parts == {name: kind for name, kind in PARTS.items() if name.startswith("client.")}


def test_all_that_the_page_names_is_there_to_import() -> None:
    assert sorted(pliant.client.__all__) == pliant.client.__all__
    for name in re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.read_text()):
        assert name in pliant.client.__all__ or isinstance(getattr(builtins, name), type), name
