"""The end of the demo: makes each job's account from its downloaded results, prints it, and writes it down."""

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table
from rich.text import Text

from examples.demo.account import Account, Check, Expected, resizes_of
from examples.demo.audit import balance, read_audit
from examples.demo.recording import Seen
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId, TaskId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the trainings learned from, and what they never saw."""

    num_samples: int
    test_set: Any
    plain: Any
    """The plain PyTorch script that the elastic one came from."""

    def model(self, model_file: Path) -> Any:
        """Return a trained model, made with plain PyTorch alone."""
        state = torch.load(model_file, weights_only=True)
        width = next(iter(state.values())).shape[0]
        model = self.plain.make_model(width)
        model.load_state_dict(state)
        return model.eval()

    def accuracy(self, model_file: Path) -> float:
        """Return the accuracy of a trained model on the test set."""
        return float(self.plain.evaluate(self.model(model_file), self.test_set))


def load_data() -> Data:
    """Return the digits, split as the trainings split them."""
    plain: Any = importlib.import_module("examples.digits.plain")
    train_set, test_set = plain.load_data()
    return Data(num_samples=len(train_set), test_set=test_set, plain=plain)


def account_of(
    seen: Seen, job_id: JobId, result: Path, data: Data, expected: Expected, killed: frozenset[TaskId]
) -> Account:
    """Return the account of one job, from its events and its downloaded results."""
    ledger = balance(
        read_audit(result / "audit"),
        num_epochs=expected.num_epochs,
        num_samples=expected.num_samples,
        steps_per_epoch=expected.steps_per_epoch,
        killed=killed,
    )
    return Account(
        label=seen.labels[job_id],
        job_id=job_id,
        state=str(seen.details[job_id].job.state),
        ledger=ledger,
        resizes=resizes_of(seen.events_of(EventKind.GENERATION_SWITCHED, job_id)),
        accuracy=data.accuracy(result / "model" / "model.pt"),
    )


def show(console: Console, seen: Seen, accounts: Iterable[Account], checks: Iterable[Check]) -> None:
    """Print the accounts and every claim with what was found."""
    show_accounts(console, seen, accounts)
    show_checks(console, checks)


def show_accounts(console: Console, seen: Seen, accounts: Iterable[Account]) -> None:
    """Print what happened to each job."""
    for account in accounts:
        ledger = account.ledger
        console.print(f"\n[bold]Training {account.label}[/] ({account.job_id})", highlight=False)
        per_epoch = sorted(set(ledger.samples_per_epoch.values()))
        facts = {
            "optimizer steps done": str(ledger.num_steps),
            "steps done again": str(len(ledger.redone)),
            "samples used per epoch": ", ".join(map(str, per_epoch)) + f" in {len(ledger.samples_per_epoch)} epochs",
            "test accuracy": f"{account.accuracy:.4f}",
        }
        for name, value in facts.items():
            console.print(f"  {name:<24}{value}", highlight=False)
        console.print(_resizes(seen, account))


def show_checks(console: Console, checks: Iterable[Check]) -> None:
    """Print every claim with what was found."""
    console.print()
    for check in checks:
        mark = Text("  ✓ " if check.holds else "  ✗ ", style="green" if check.holds else "bold red")
        console.print(mark.append(f"{check.label} {check.claim}: {check.found}", style="default"), soft_wrap=True)


def _resizes(seen: Seen, account: Account) -> Table:
    table = Table(box=None, padding=(0, 2), title=None)
    for head in ("at, s", "size", "after step", "training stood still, ms", "done again"):
        table.add_column(head, justify="right")
    for resize in account.resizes:
        pause = "start" if resize.from_size == 0 else f"{resize.pause_ms:.0f}"
        table.add_row(
            f"{seen.elapsed_s(resize.at):.1f}",
            f"{resize.from_size} → {resize.to_size}",
            str(resize.step),
            pause,
            str(resize.redone_steps),
        )
    return table


def write(folder: Path, seen: Seen, whole: Mapping[str, object], show_on: Callable[[Console], None]) -> None:
    """Write the events, and the accounts for programs and, as they are shown, for people."""
    (folder / "events.jsonl").write_text("".join(_line(event) for event in seen.events))
    (folder / "account.json").write_text(json.dumps(to_jsonable_python(whole), indent=2, ensure_ascii=False) + "\n")
    with (folder / "account.txt").open("w") as file:
        show_on(Console(file=file, width=100))


def _line(event: Event) -> str:
    return json.dumps(to_jsonable_python(event), ensure_ascii=False) + "\n"
