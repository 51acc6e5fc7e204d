"""Play the demo: two trainings share 8 slots of this machine, and their account is checked.

`python -m examples.demo.play` starts a server of its own, submits the same training twice, plays the scenario, prints
the account of each job and leaves chart, events and models under `demo-result/`. The exit status is 0 only if every
claim holds.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from examples.demo.account import Account, Check, Expected, checks_of
from examples.demo.chart import draw
from examples.demo.command import ROOT, make_parser, perform, showing
from examples.demo.director import Director
from examples.demo.recording import Recording, Seen
from examples.demo.report import account_of, load_data, show, write
from examples.demo.scenario import NUM_SLOTS, Outcome, Settings, play
from examples.demo.server import leftovers, serving
from examples.demo.watch import catch_up, refresh, watching
from pliant.client import Client

RESULTS = ("slots.png", "events.jsonl", "a/model/model.pt", "b/model/model.pt", "account.txt", "account.json")
EPOCHS_PER_CPU, MIN_EPOCHS, MAX_EPOCHS = 30, 60, 240
SIZES_OF_A = (1, 8, 4, 3)
SIZES_OF_B = (4, 5, 4, 5, 8)


def main() -> int:
    """Play, check, and say where everything lies."""
    parser = make_parser("make demo", __doc__, num_epochs=num_epochs_for(len(os.sched_getaffinity(0))))
    options = parser.parse_args()
    settings = Settings(code=ROOT / "examples" / "digits", num_epochs=options.epochs)
    return perform(options, lambda console, folder, live: run(console, folder, settings, live=live), RESULTS)


def num_epochs_for(num_cpus: int) -> int:
    """Return how many epochs keep this machine busy for about a minute: long enough to watch every stage."""
    return min(max(EPOCHS_PER_CPU * num_cpus, MIN_EPOCHS), MAX_EPOCHS)


def run(console: Console, folder: Path, settings: Settings, *, live: bool) -> tuple[Check, ...]:
    """Play the scenario on a server of its own and return what holds and what does not.

    Raises:
        DemoFailed: the scenario did not go as it must.
    """
    home = folder / "home"
    with serving(home, num_slots=NUM_SLOTS, log=folder / "server.log") as client:
        recording = Recording(began_at=time.time(), num_slots=NUM_SLOTS)
        with showing(console, recording, live=live) as view, watching(home, recording):
            outcome = play(client, Director(recording, view.tick), recording, settings)
        fetch(client, recording, outcome, folder)
    left = leftovers(home)
    seen = recording.at(time.time())
    draw(seen, folder / "slots.png")
    accounts, checks = settle(seen, outcome, folder, settings)
    checks += (Check(label="the demo", claim="left no process behind", holds=not left, found=f"{len(left)} left"),)
    whole = {"accounts": accounts, "checks": checks}
    write(folder, seen, whole, lambda file: show(file, seen, accounts, checks))
    show(console, seen, accounts, checks)
    return checks


def settle(
    seen: Seen, outcome: Outcome, folder: Path, settings: Settings
) -> tuple[tuple[Account, ...], tuple[Check, ...]]:
    """Return the account of each job, and every claim about them with what was found."""
    data = load_data()
    of_a = Expected(
        num_epochs=settings.num_epochs,
        num_samples=data.num_samples,
        steps_per_epoch=-(-data.num_samples // settings.batch_size),
        max_redone_steps=0,
        sizes=SIZES_OF_A,
    )
    of_b = replace(of_a, max_redone_steps=1, sizes=SIZES_OF_B)
    a = account_of(seen, outcome.a, folder / "a", data, of_a, frozenset({outcome.killed}))
    b = account_of(seen, outcome.b, folder / "b", data, of_b, frozenset({outcome.killed}))
    return (a, b), (*checks_of(a, of_a), *checks_of(b, of_b))


def fetch(client: Client, recording: Recording, outcome: Outcome, folder: Path) -> None:
    """Get everything that the account needs while the server is there."""
    catch_up(client, recording)
    refresh(client, recording)
    client.result(outcome.a, folder / "a")
    client.result(outcome.b, folder / "b")


if __name__ == "__main__":
    sys.exit(main())
