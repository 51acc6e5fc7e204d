"""Play the demo: a trained model answers requests on the slots of two trainings, and the account is checked.

`python -m examples.serve_demo.play` starts a server of its own, trains A and B undisturbed, deploys A's model, trains
both again beside it, and lets a wave of requests come and go. It prints the account and leaves chart, events and models
under `demo-result/`. The exit status is 0 only if every claim holds.

A request asks for the digits on a sheet of 360 images; the network computes them all. How long that takes with
everything else on the machine is measured before the wave, and the wave is as large as one kernel cannot answer. How
many epochs A and B train is worked out from a few of them first, so that they outlast the wave on any machine.
"""

import os
import sys
import time
from pathlib import Path

from rich.console import Console

from examples.demo.account import Account, Check, Expected, checks_of
from examples.demo.command import ROOT, make_parser, perform, showing
from examples.demo.director import Director
from examples.demo.recording import Recording, Seen
from examples.demo.report import Data, account_of, load_data, show_accounts, show_checks, write
from examples.demo.server import leftovers, serving
from examples.demo.watch import catch_up, refresh, watching
from examples.serve_demo.account import (
    Latency,
    ServeAccount,
    digest_of,
    same_result_check,
    serve_account_of,
    serve_checks_of,
    sharing_check_of,
)
from examples.serve_demo.chart import draw
from examples.serve_demo.scenario import (
    LABELS,
    NUM_KERNELS,
    NUM_SLOTS,
    NUM_WORKERS,
    RELEASE_DELAY_S,
    ServeOutcome,
    ServeSettings,
    play,
)
from pliant.client.http.home import read_token

RESULTS = ("serving.png", "events.jsonl", "a/model/model.pt", "b/model/model.pt", "account.txt", "account.json")


def main() -> int:
    """Play, check, and say where everything lies."""
    parser = make_parser("make demo-serve", __doc__, num_epochs=None)
    options = parser.parse_args()
    num_alone = NUM_WORKERS if len(os.sched_getaffinity(0)) >= NUM_SLOTS else 1
    settings = ServeSettings(code=ROOT / "examples" / "digits", num_epochs=options.epochs, num_alone=num_alone)
    return perform(options, lambda console, folder, live: run(console, folder, settings, live=live), RESULTS)


def run(console: Console, folder: Path, settings: ServeSettings, *, live: bool) -> tuple[Check, ...]:
    """Play the scenario on a server of its own and return what holds and what does not.

    Raises:
        DemoFailed: the scenario did not go as it must.
    """
    home = folder / "home"
    with serving(home, num_slots=NUM_SLOTS, log=folder / "server.log") as client:
        recording = Recording(began_at=time.time(), num_slots=NUM_SLOTS)
        with showing(console, recording, live=live) as view, watching(home, recording):
            director = Director(recording, view.tick)
            outcome = play(client, read_token(home), director, recording, settings, folder)
        ended_at = time.time()
        catch_up(client, recording)
        refresh(client, recording)
        for job_id, label in zip(outcome.shared, LABELS, strict=True):
            client.result(job_id, folder / label.lower())
    left = leftovers(home)
    seen = recording.at(ended_at)
    draw(seen, folder / "serving.png")
    serve_account, accounts, checks = settle(seen, outcome, folder, settings)
    checks += (Check(label="the demo", claim="left no process behind", holds=not left, found=f"{len(left)} left"),)

    def show(on: Console) -> None:
        show_accounts(on, seen, accounts)
        show_endpoint(on, serve_account, outcome.answer_s)
        show_checks(on, checks)

    write(folder, seen, {"endpoint": serve_account, "accounts": accounts, "checks": checks}, show)
    show(console)
    return checks


def settle(
    seen: Seen, outcome: ServeOutcome, folder: Path, settings: ServeSettings
) -> tuple[ServeAccount, tuple[Account, ...], tuple[Check, ...]]:
    """Return the accounts of the endpoint and of both trainings, and every claim about them with what was found."""
    data = load_data()
    expected = Expected(
        num_epochs=outcome.num_epochs,
        num_samples=data.num_samples,
        steps_per_epoch=-(-data.num_samples // settings.batch_size),
        max_redone_steps=0,
        sizes=None,
    )
    wave_at, last_at = outcome.wave_at, max(answer.intended_at for answer in seen.answers)
    endpoint = serve_account_of(
        seen, shared=outcome.shared, wave_at=wave_at, crest_at=outcome.crest_at, num_sent=outcome.num_sent
    )
    checks = serve_checks_of(endpoint, num_kernels=NUM_KERNELS, release_delay_s=RELEASE_DELAY_S)
    accounts = []
    for job_id, label in zip(outcome.shared, LABELS, strict=True):
        result, alone = folder / label.lower(), folder / f"{label.lower()}-alone"
        account = account_of(seen, job_id, result, data, expected, frozenset())
        accounts.append(account)
        checks += (
            *checks_of(account, expected),
            sharing_check_of(account, wave_at=wave_at, last_at=last_at),
            same_result_check(label, *(_digest(data, folder) for folder in (result, alone))),
        )
    return endpoint, tuple(accounts), checks


def _digest(data: Data, result: Path) -> str:
    return digest_of(data.model(result / "model" / "model.pt").state_dict())


def show_endpoint(console: Console, account: ServeAccount, answer_s: float) -> None:
    """Print what happened to the endpoint."""
    console.print(f"\n[bold]Endpoint {account.label}[/]", highlight=False)
    facts = {
        "a request": f"360 images, all computed by the network; {1000 * answer_s:.0f} ms beside the trainings (median)",
        "requests": f"{account.num_sent}, {account.most_per_s} in the busiest second",
        "sent too late by": f"{1000 * account.sender_late_s:.0f} ms at most, which counts as latency",
        "latency before the wave": _told(account.before),
        "latency in the wave": _told(account.wave),
        f"with all {NUM_KERNELS} kernels": _told(account.crest),
        "first extra kernel": _after(account.first_extra_s, "the wave came"),
        f"all {NUM_KERNELS} kernels": _after(account.all_kernels_s, "the wave came"),
        "one kernel again": _after(account.kernels_back_s, "the last request"),
        "trainings on 7 slots": _after(account.slots_back_s, "the last request"),
    }
    for name, value in facts.items():
        console.print(f"  {name:<24}{value}", highlight=False, soft_wrap=True)


def _after(seconds: float | None, what: str) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s after {what}"


def _told(latency: Latency) -> str:
    p50, p95, most = (f"{1000 * one:.0f} ms" for one in (latency.p50_s, latency.p95_s, latency.max_s))
    return f"p50 {p50}, p95 {p95}, at most {most}, of {latency.num} requests, from when each was to be sent"


if __name__ == "__main__":
    sys.exit(main())
