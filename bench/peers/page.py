"""Writes the report of the comparison with the peers, and judges the claims."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from bench._report import Claim, head, spread, table, verdicts
from bench.peers.session import EVENTS, Outcome
from bench.peers.sides import KINDS

GROW, SHRINK, KILL = (EVENTS[0], EVENTS[2]), EVENTS[1], EVENTS[3]
TORCHFT = tuple(kind.key for kind in KINDS if kind.peer == "torchft")
FLOOR_S = 0.001
"""Less than that cannot be told from the noise of a step; ratios are taken against it."""

Found = Mapping[tuple[str, str], Sequence[Outcome]]

NOTES = """How each is run, all over gloo on the loopback interface, one thread per worker:

- **Pliant**: a real `pliant up` with four slots, and a job with the default mode and the V that one of up to four tasks
  has by default, 4; growing and shrinking is a change of the job's maximum. No checkpoints are written: with a survivor
  none is needed. The global batch is 64, so in `exact` mode a part is 16 samples; `fast` computes what the peers
  compute, one piece per worker.
- **torchrun elastic, tuned**: one agent and one worker per node, c10d rendezvous, last call 1 s (the least it takes;
  30 s as shipped), keep-alive 4 s (15 s as shipped), monitor interval 0.1 s, at least two nodes, no store shared
  between agents and workers (with it newcomers hang in 2.13); DDP with `gradient_as_bucket_view`; after every step the
  first worker writes a snapshot into the machine's memory, so that no step is lost, and every start loads it. Leaving
  is SIGTERM to the agent. The global batch of 64 is kept by its script.
- **torchft**: a lighthouse and one process per replica, as its README and `train_ddp.py`. Its DDP hook was mended: as
  published in 0.2.0 an assertion ends every survivor when a reduction over gloo fails. Leaving is SIGTERM: it has no
  other way. Every replica computes 32 samples, so the global batch changes with their number; a newcomer's first step
  counts as zeros.
- **Ray Train elastic**: version 2 of its engine on a cluster with one node per worker and a head without CPUs, resize
  monitor 1 s (60 s as shipped), health checks every 0.5 s (3 s as shipped), workers polled every 0.1 s (2 s as
  shipped), a checkpoint reported every step into the machine's memory. Leaving is a drained node.
"""


def page(found: Found, missing: Mapping[str, str], command: str, judged: Sequence[Claim], pins: str) -> str:
    """Return the report as Markdown."""
    parts = [
        head("Lost time when workers change, against other systems", command),
        f"Peers: {pins}.\n",
        *(f"**{peer} could not be installed and is not in the tables:** {why}\n" for peer, why in missing.items()),
        NOTES,
        "Seconds of lost time, median [min max] of the sessions; in brackets the usual step before the event.\n",
        *(_table(found, model, text) for model, text in MODELS.items()),
        verdicts(judged),
        *_troubles(found),
    ]
    return "\n".join(parts)


MODELS = {"cnn": "CNN, 4.8 MB of parameters", "mlp": "MLP, 99.6 MB of parameters"}


def _table(found: Found, model: str, title: str) -> str:
    rows = []
    for kind in KINDS:
        outcomes = found.get((kind.key, model), ())
        if outcomes:
            rows.append((kind.label, *(_cell(outcomes, event) for event in EVENTS)))
    if not rows:
        return f"## {title}\n\nNot in this run.\n"
    return f"## {title}\n\n" + table(("system", *EVENTS), *rows)


def _cell(outcomes: Sequence[Outcome], event: str) -> str:
    costs = [cost for outcome in outcomes for cost in outcome.lost.get(event, ())]
    if not costs:
        return "not reached, see below"
    usual = statistics.median(cost.usual_s for cost in costs)
    return f"{spread([cost.lost_s for cost in costs], 3)} (step {usual:.3f})"


def _troubles(found: Found) -> Iterator[str]:
    labels = {kind.key: kind.label for kind in KINDS}
    for (key, model), outcomes in found.items():
        for outcome in outcomes:
            if outcome.trouble:
                yield f"- {labels[key]}, {model}, went no further: {outcome.trouble}\n"


def claims(found: Found) -> Iterator[Claim]:
    """Yield every claim with what was found."""
    for event in EVENTS:
        factor = 20.0 if event == KILL else 50.0
        yield _shorter(found, "cnn", event, "torchrun", factor)
        if event != KILL:
            yield _shorter(found, "cnn", event, "ray", 50.0)
    for model in MODELS:
        for key in ("pliant", "pliant-fast") if model == "mlp" else ("pliant",):
            yield _against_torchft(found, model, KILL, key, allowed_s=0.0)
            for event in GROW:
                yield _against_torchft(found, model, event, key, allowed_s=None)


def _shorter(found: Found, model: str, event: str, peer: str, factor: float) -> Claim:
    ours, theirs = lost(found, "pliant", model, event), lost(found, peer, model, event)
    text = f"{model}, {event}: {factor:.0f} × shorter than {peer}"
    if ours is None or theirs is None:
        return Claim(text=text, found="", holds=None)
    times = theirs / max(ours, FLOOR_S)
    return Claim(text=text, found=f"{ours:.3f} s against {theirs:.3f} s: {times:.0f} ×", holds=times >= factor)


def _against_torchft(found: Found, model: str, event: str, key: str, *, allowed_s: float | None) -> Claim:
    """Claim that nothing of torchft is shorter; a pause of a planned change may differ by a usual step."""
    ours = lost(found, key, model, event)
    theirs = [cost for key in TORCHFT if (cost := lost(found, key, model, event)) is not None]
    allowed = usual(found, key, model, event) if allowed_s is None else allowed_s
    word = "within one usual step of" if allowed_s is None else "shorter than"
    who = " in fast mode" if key == "pliant-fast" else ""
    text = f"{model}, {event}{who}: {word} torchft at its shortest"
    if ours is None or not theirs:
        return Claim(text=text, found="", holds=None)
    return Claim(text=text, found=f"{ours:.3f} s against {min(theirs):.3f} s", holds=ours <= min(theirs) + allowed)


def lost(found: Found, key: str, model: str, event: str) -> float | None:
    """Return the median of what an event cost, seconds; None if it was not measured."""
    costs = [cost.lost_s for outcome in found.get((key, model), ()) for cost in outcome.lost.get(event, ())]
    return statistics.median(costs) if costs else None


def usual(found: Found, key: str, model: str, event: str) -> float:
    """Return a system's usual step before an event, seconds."""
    costs = [cost.usual_s for outcome in found.get((key, model), ()) for cost in outcome.lost.get(event, ())]
    return statistics.median(costs) if costs else 0.0
