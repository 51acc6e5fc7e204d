"""The demo's books: right histories balance, and a single wrong line anywhere is found."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.demo.audit import Attempt, Ledger, balance, read_audit

NUM_SAMPLES = 23
BATCH = 6
STEPS_PER_EPOCH = 4
NUM_EPOCHS = 3
NUM_STEPS = STEPS_PER_EPOCH * NUM_EPOCHS


@dataclass
class History:
    """Audit files of a made training, line by line."""

    lines: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def attempt(self, generation: int, step: int, samples: list[int], size: int, committed: set[int]) -> None:
        for rank in range(size):
            mine = self.lines.setdefault(f"job-1.{rank + 1}", [])
            mine.append({"g": generation, "s": step, "e": step // STEPS_PER_EPOCH, "i": samples[rank::size]})
            if rank in committed:
                mine.append({"g": generation, "c": step})

    def write(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for task, lines in self.lines.items():
            (folder / f"{task}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def batches(seed: int) -> list[list[int]]:
    order = []
    for epoch in range(NUM_EPOCHS):
        samples = list(range(NUM_SAMPLES))
        Random(seed * 100 + epoch).shuffle(samples)
        order += [samples[i * BATCH : (i + 1) * BATCH] for i in range(STEPS_PER_EPOCH)]
    return order


def made(sizes: list[int], losses: dict[int, bool], seed: int = 0) -> History:
    """Make a training whose size changes at every step; a loss at a step leaves an attempt that does not count.

    `losses[step]` tells whether the task that died (rank 0) had committed the step before it died.
    """
    history, generation = History(), 1
    for step, samples in enumerate(batches(seed)):
        if step in losses:
            history.attempt(generation, step, samples, size=3, committed={0} if losses[step] else set())
        generation += 1
        size = sizes[step % len(sizes)]
        history.attempt(generation, step, samples, size=size, committed=set(range(size)))
    return history


def books(history: History, folder: Path, killed: frozenset[str] = frozenset({"job-1.1"})) -> Ledger:
    history.write(folder)
    return balance(
        read_audit(folder),
        num_epochs=NUM_EPOCHS,
        num_samples=NUM_SAMPLES,
        steps_per_epoch=STEPS_PER_EPOCH,
        killed=killed,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    losses=st.dictionaries(st.integers(0, NUM_STEPS - 1), st.booleans(), max_size=3),
    seed=st.integers(0, 99),
)
def test_a_right_history_balances(tmp_path: Path, sizes: list[int], losses: dict[int, bool], seed: int) -> None:
    for old in tmp_path.glob("*.jsonl"):
        old.unlink()

    ledger = books(made(sizes, losses, seed), tmp_path)

    assert ledger.faults == ()
    assert ledger.num_steps == NUM_STEPS
    assert [attempt.step for attempt in ledger.redone] == sorted(losses)
    assert ledger.lost_commits == ()
    assert ledger.samples_per_epoch == dict.fromkeys(range(NUM_EPOCHS), NUM_SAMPLES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(data=st.data())
def test_one_sample_more_or_less_or_another_is_found(tmp_path: Path, data: st.DataObject) -> None:
    for old in tmp_path.glob("*.jsonl"):
        old.unlink()
    history = made([2, 4], {})
    lines = [line for task in history.lines.values() for line in task if line.get("i")]
    samples = data.draw(st.sampled_from(lines))["i"]
    assert isinstance(samples, list)
    spot = data.draw(st.integers(0, len(samples) - 1))
    match data.draw(st.sampled_from(["missing", "twice", "another", "unknown"])):
        case "missing":
            del samples[spot]
        case "twice":
            samples.append(samples[spot])
        case "another":
            samples[spot] = (samples[spot] + 1) % NUM_SAMPLES
        case "unknown":
            samples[spot] = NUM_SAMPLES

    assert books(history, tmp_path).faults != ()


def test_a_step_that_nobody_committed_is_found(tmp_path: Path) -> None:
    history = made([2], {})
    for task, lines in history.lines.items():
        history.lines[task] = [line for line in lines if line.get("c") != 7]

    ledger = books(history, tmp_path)

    assert ledger.num_steps == NUM_STEPS - 1
    assert "steps never committed: 7" in ledger.faults


def test_a_step_done_again_is_found(tmp_path: Path) -> None:
    history = made([2], {})
    history.attempt(99, 5, batches(0)[5], size=2, committed={0, 1})

    ledger = books(history, tmp_path)

    assert ledger.faults == ()
    assert [attempt.step for attempt in ledger.redone] == [5]
    assert ledger.lost_commits == ledger.redone


def test_a_commit_that_only_the_killed_task_made_is_not_lost_work(tmp_path: Path) -> None:
    history = made([2], {5: True})

    assert books(history, tmp_path).lost_commits == ()
    assert books(history, tmp_path, killed=frozenset()).lost_commits == (Attempt(6, 5),)


def test_the_torn_last_line_of_a_killed_task_is_ignored(tmp_path: Path) -> None:
    made([2], {}).write(tmp_path)
    with (tmp_path / "job-1.1.jsonl").open("a") as file:
        file.write('{"g":99,"s":1')

    assert Attempt(99, 1) not in read_audit(tmp_path).samples


def test_a_broken_line_elsewhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "job-1.1.jsonl").write_text('{"g":1,"c":0}\n{"g":1,"s"\n{"g":1,"c":1}\n')

    with pytest.raises(ValueError, match=r"job-1\.1\.jsonl:2: no audit record"):
        read_audit(tmp_path)
