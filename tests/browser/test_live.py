"""A page that stays open: the server dies and comes back, and what strangers write is text."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import WIDE
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

HOSTILE = """import torch, sys
from pliant.train import Run
print("<script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>", flush=True)
print("\\x1b[31mred\\x1b[0m \\x1b]8;;javascript:window.stolen=1\\x07link\\x1b]8;;\\x07", flush=True)
print("\\x1b[2J\\x1b]0;title\\x07 end", flush=True)
print("x" * 20000, flush=True)
x = torch.randn(64, 4)
model = torch.nn.Linear(4, 1)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=32)
for epoch in run.epochs(2):
    for inputs, targets in run:
        run.step(torch.nn.functional.mse_loss(model(inputs), targets))
"""
NAME = "<img src=x onerror=window.stolen=1>"


def test_a_killed_server_comes_back_and_the_page_goes_on(visit: Any, pool: Pool) -> None:
    visitor = visit("a-admin").stand_still()
    page = visitor.goto("/settings")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.evaluate("window.notReloaded = true")
    pool.signal(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("does not answer", timeout=60_000)
    changes = [
        page.get_by_role("button", name=name) for name in ("What would go now", "Clean up now…", "End the server…")
    ]
    for change in changes:
        expect(change).to_be_disabled()
    for scheme in ("dark", "light"):
        visitor.resize(WIDE, scheme)
        assert visitor.violations(others=scheme == "light") == []
    visitor.picture("offline")
    pool.up()
    expect(page.get_by_text("live", exact=True)).to_be_visible(timeout=60_000)
    expect(page.get_by_text("does not answer")).to_have_count(0)
    for change in changes:
        expect(change).to_be_enabled()
    assert page.evaluate("window.notReloaded") is True
    visitor.complaints[:] = [line for line in visitor.complaints if "ERR_CONNECTION_REFUSED" not in line]


def test_what_strangers_write_is_text(visit: Any, pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE)
    job = pool.submit(script, "--name", NAME.replace("/", ""), "--tag", f"note={NAME[:60]}")
    pool.until(lambda: pool.json("show", job)["job"]["state"] == "completed", "it ends", 60)
    visitor = visit("a-admin")
    for path in ("/", "/jobs", f"/jobs/{job}/overview", f"/jobs/{job}/config", f"/jobs/{job}/results"):
        page = visitor.go(path)
        expect(page.get_by_text(re.compile(re.escape(NAME))).first).to_be_attached()
        assert page.evaluate("window.stolen") is None, path
    page = visitor.go(f"/jobs/{job}/logs")
    expect(page.get_by_text("<script>window.stolen = 1</script>").first).to_be_attached()
    expect(page.get_by_role("link", name="link", exact=True)).to_have_count(0)
    expect(page.get_by_text("red", exact=True).first).to_be_attached()
    assert page.evaluate("window.stolen") is None
    assert "title" not in page.title()
