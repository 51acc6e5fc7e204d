"""The example on the page about the client runs against a real server."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

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
