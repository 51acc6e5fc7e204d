"""The histograms of a training, in the browser: as a picture that keys move through, as a table, and for everybody."""

from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from tests.browser.conftest import NARROW, WIDE, Visitor
from tests.e2e.pool import Pool

SCRIPT = """
import time
import torch
from pliant.train import Run

x = torch.randn(64, 6)
model = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.Tanh(), torch.nn.Linear(20, 2))
data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=16, virtual_workers=1)
for _ in run.epochs(1):
    for inputs, labels in run:
        time.sleep(0.5)
        run.step(torch.nn.functional.cross_entropy(model(inputs), labels))
"""


def test_histograms_are_looked_at_layer_by_layer(visit: Any, pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    with pool.client() as client:
        job = client.submit(tmp_path / "train.py", max_tasks=1, histograms_every=1)
        assert job.wait(timeout_s=120).state.value == "completed"
        steps = [one.step for one in client.histograms(job.id, "weights/0.weight").histograms]
    assert len(steps) >= 2
    visitor: Visitor = visit("a-operator")
    page = visitor.goto(f"/jobs/{job.id}/metrics")
    panel = page.get_by_role("region", name="Histograms", exact=True)
    picture = panel.get_by_role("region", name="How 0.weight lies")
    reading = panel.get_by_role("status")
    expect(reading).to_contain_text(f"step {steps[-1]}")
    picture.focus()
    page.keyboard.press("ArrowUp")
    expect(reading).to_contain_text(f"step {steps[-2]}")
    panel.get_by_text("Gradients", exact=True).click()
    expect(panel.get_by_role("region", name="How 0.weight lies")).to_be_visible()
    assert "histogram=gradients%2F0.weight" in page.url
    assert visitor.violations() == []
    visitor.picture("histograms-wide-light")
    panel.get_by_text("Table", exact=True).click()
    rows = panel.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(1 + len(steps))
    expect(rows.nth(1)).to_contain_text("120")
    assert visitor.violations() == []
    for size, scheme in ((WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")):
        other: Visitor = visit("a-operator", size=size, scheme=scheme)
        other.goto(f"/jobs/{job.id}/metrics?histogram=weights%2F0.bias")
        expect(other.page.get_by_role("region", name="How 0.bias lies")).to_be_visible()
        other.page.get_by_role("region", name="How 0.bias lies").scroll_into_view_if_needed()
        assert (other.violations(), other.num_sideways()) == ([], 0)
        other.picture(f"histograms-{'wide' if size == WIDE else 'narrow'}-{scheme}")
