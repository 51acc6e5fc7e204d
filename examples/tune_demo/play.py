"""Play the demo: a search shares 8 slots with a training, twice, and the account is checked.

`python -m examples.tune_demo.play` starts a server of its own and searches twice for the parameters of the digits model
beside the same training: first with trials that grow and shrink, then with trials of a fixed size. Rungs are decided as
a whole, so both searches must come to the same trials, values and best one, bit for bit. The best trial and the
training are repeated alone on one slot. It prints the account and leaves chart and events under `demo-result/`. The
exit status is 0 only if every claim holds.
"""

import sys
import time
from pathlib import Path

from rich.console import Console

from examples.demo.account import Check
from examples.demo.command import ROOT, make_parser, perform, showing
from examples.demo.director import Director
from examples.demo.recording import Recording
from examples.demo.report import show_checks, write
from examples.demo.server import leftovers, serving
from examples.demo.watch import catch_up, refresh, watching
from examples.tune_demo.account import SearchAccount, TuneAccount, account_of, checks_of, describe_handovers
from examples.tune_demo.chart import draw
from examples.tune_demo.scenario import NUM_SLOTS, TuneSettings, play
from pliant.core.space import text_of_value

RESULTS = ("tuning.png", "events.jsonl", "best/model/model.pt", "account.txt", "account.json")
NUM_EPOCHS = 24


def main() -> int:
    """Play, check, and say where everything lies."""
    parser = make_parser("make demo-tune", __doc__, num_epochs=NUM_EPOCHS)
    parser.add_argument("--seed", type=int, default=0, help="of the sampler that chooses the trials")
    parser.add_argument("--rigid", type=int, default=2, help="slots of each trial of a fixed size")
    options = parser.parse_args()
    settings = TuneSettings(
        code=ROOT / "examples" / "digits", num_epochs=options.epochs, seed=options.seed, rigid_tasks=options.rigid
    )
    return perform(options, lambda console, folder, live: run(console, folder, settings, live=live), RESULTS)


def run(console: Console, folder: Path, settings: TuneSettings, *, live: bool) -> tuple[Check, ...]:
    """Play the scenario on a server of its own and return what holds and what does not.

    Raises:
        DemoFailed: the scenario did not go as it must.
    """
    home = folder / "home"
    with serving(home, num_slots=NUM_SLOTS, log=folder / "server.log") as client:
        recording = Recording(began_at=time.time(), num_slots=NUM_SLOTS)
        with showing(console, recording, live=live) as view, watching(home, recording):
            outcome = play(client, Director(recording, view.tick), recording, settings)
        catch_up(client, recording)
        refresh(client, recording)
        assert outcome.elastic.view.best is not None
        client.result(outcome.elastic.view.best.job_id, folder / "best")
    left = leftovers(home)
    seen = recording.at(time.time())
    draw(seen, (outcome.elastic, outcome.rigid), folder / "tuning.png")
    account = account_of(seen, outcome)
    checks = checks_of(account)
    checks += (Check(label="the demo", claim="left no process behind", holds=not left, found=f"{len(left)} left"),)

    def show_all(on: Console) -> None:
        show_account(on, account)
        show_checks(on, checks)

    write(folder, seen, {"account": account, "checks": checks}, show_all)
    show_all(console)
    return checks


def show_account(console: Console, account: TuneAccount) -> None:
    """Print what happened to both searches."""
    for one in (account.elastic, account.rigid):
        console.print(f"\n[bold]Search {one.label}[/]", highlight=False)
        for name, value in _facts(one).items():
            console.print(f"  {name:<24}{value}", highlight=False, soft_wrap=True)
    console.print(
        f"\nThe elastic search did {account.speedup:.2f} times the trials per minute of the rigid one.", highlight=False
    )


def _facts(one: SearchAccount) -> dict[str, str]:
    best = next((trial for trial in one.trials if trial.number == one.best), None)
    values = {} if best is None else {name: text_of_value(value) for name, value in best.values.items()}
    result = "none" if best is None or not best.results else f"trial {best.number}, {best.results[0]:.6f}"
    return {
        "took": f"{one.took_s:.1f} s, {one.trials_per_min:.1f} trials per minute",
        "slots in use": f"{one.slots:.2f} on average, with A's",
        "best": " ".join([result, *(f"{name}={text}" for name, text in values.items())]),
        "a step took": f"{1000 * one.step_s:.0f} ms (median of all epochs)",
        "slots left to others": describe_handovers(one),
    }


if __name__ == "__main__":
    sys.exit(main())
