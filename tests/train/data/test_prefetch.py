"""Real loader processes: nothing is lost or repeated at a resize, and what comes next is there before the switch."""

import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.process_state import has_ended
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pliant.train.data.feed import Feed, MapFeed, open_feed
from pliant.train.data.fetcher import BatchRequest, Fetcher
from pliant.train.data.loader_process import LoaderError, LoaderProcesses
from pliant.train.data.loading import LoadSettings
from pliant.train.data.prefetch import MAX_DEPTHS, Prefetcher
from pliant.train.data.sharding import Part, ShardingPlan, Worker
from pliant.train.errors import TrainingError

PATIENCE_S = 30.0
NUM_SAMPLES = 48  # an epoch is 3 steps of 16 samples in 8 parts


class Recorded(Dataset[tuple[int, int, torch.Tensor]]):
    """Writes a line for every sample that is fetched; draws from every generator."""

    def __init__(self, record: Path) -> None:
        self.record = record

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> tuple[int, int, torch.Tensor]:
        file = os.open(self.record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{index}\n".encode())
        os.close(file)
        drawn = torch.cat([torch.rand(2), torch.tensor([random.random(), numpy.random.random()])])
        return index, os.getpid(), drawn

    def fetched(self) -> list[int]:
        return [int(line) for line in self.record.read_text().split()] if self.record.exists() else []


class Failing(Dataset[int]):
    """Fails at a sample."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at = at
        self.error = error

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> int:
        if index == self.at:
            raise self.error
        return index


class Unportable(Exception):
    """Cannot be made again from its `args`."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


Open = Callable[..., tuple[Feed, ShardingPlan]]


@pytest.fixture
def opened() -> Iterator[Open]:
    feeds: list[Feed] = []

    def open_one(data: Any, *, plan: dict[str, Any] | None = None, **options: Any) -> tuple[Feed, ShardingPlan]:
        feed = open_feed(LoadSettings(data=data, **{"shuffle": False, "num_workers": 2, **options}), seed=3)
        feeds.append(feed)
        bound = ShardingPlan(
            **{"num_samples": feed.num_samples, "batch_size": 16, "virtual_workers": 8, **(plan or {})}
        )
        feed.bind(bound)
        return feed, bound

    yield open_one
    for feed in feeds:
        feed.close()


def step_of(feed: Feed, plan: ShardingPlan, step: int, worker: Worker, next_worker: Worker | None = None) -> list[Any]:
    feed.begin_step(step, worker, next_worker)
    return [feed.load(part) for part in plan.parts(step, worker)]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


# -- exactly once -----------------------------------------------------------------------------------------------------


def most_for(rank: int | None, size: int, plan: ShardingPlan) -> tuple[int, ...]:
    """Return shares of which one worker has all that the others need not have; even ones without a rank."""
    if rank is None or rank >= size:
        return ()
    return tuple(plan.virtual_workers - size + 1 if one == rank else 1 for one in range(size))


@pytest.mark.parametrize("whole_shares", [False, True])
def test_every_sample_comes_once_an_epoch_for_any_history_of_sizes_and_shares(
    opened: Open, tmp_path: Path, whole_shares: bool
) -> None:
    """Three workers, of which some are idle, with announcements that come true, change or come to nothing."""
    feeds = [
        opened(Recorded(tmp_path / "record"), num_workers=1, plan={"whole_shares": whole_shares}) for _ in range(3)
    ]
    plan = feeds[0][1]

    @settings(max_examples=15)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        sizes, ranks = st.integers(1, 3), st.none() | st.integers(0, 2)
        for epoch in range(2):
            used: list[int] = []
            for step in range(epoch * 3, epoch * 3 + 3):
                size, announced = data.draw(sizes, label=f"size at {step}"), data.draw(st.none() | sizes)
                if data.draw(st.booleans(), label=f"step {step} is lost once"):
                    size = data.draw(sizes)
                    for rank in range(size):
                        step_of(feeds[rank][0], plan, step, Worker(size, rank))
                shares = () if whole_shares else most_for(data.draw(ranks, label=f"has most at {step}"), size, plan)
                for rank in range(size):
                    upcoming = Worker(announced, rank) if announced is not None and rank < announced else None
                    batches = step_of(feeds[rank][0], plan, step, Worker(size, rank, shares), upcoming)
                    used += [index for batch in batches for index in batch[0].tolist()]
            assert sorted(used) == list(range(NUM_SAMPLES))

    check()


def test_augmentation_is_the_same_for_any_number_of_tasks_and_loader_processes(opened: Open, tmp_path: Path) -> None:
    def drawn(num_workers: int, size: int) -> dict[tuple[int, int], list[float]]:
        found = {}
        for rank in range(size):
            feed, plan = opened(Recorded(tmp_path / "record"), num_workers=num_workers, shuffle=True)
            for step in range(6):
                for indices, _, values in step_of(feed, plan, step, Worker(size, rank)):
                    for index, value in zip(indices.tolist(), values.tolist(), strict=True):
                        found[step // 3, index] = value
            feed.close()
        return found

    expected = drawn(0, 1)

    assert len(expected) == 2 * NUM_SAMPLES
    assert drawn(2, 1) == expected
    assert drawn(0, 3) == expected
    assert drawn(2, 3) == expected


# -- ahead ------------------------------------------------------------------------------------------------------------


def test_parts_are_loaded_ahead_of_their_use_but_not_without_end(opened: Open, tmp_path: Path) -> None:
    data = Recorded(tmp_path / "record")
    feed, plan = opened(data, prefetch_factor=2)

    step_of(feed, plan, 0, Worker(2, 0))

    wait_for(lambda: sorted(data.fetched()) == sorted([*range(8), *range(16, 24)]))


@pytest.mark.parametrize(
    ("worker", "next_worker", "new"),
    [
        (Worker(4, 1), Worker(2, 0), [16, 17, 18, 19]),  # shrinks: more parts than before
        (Worker(2, 1), Worker(3, 1), [22, 23]),  # grows: one part that was another's
        (Worker(4, 0), Worker(4, 3), [28, 29, 30, 31]),  # changes its place
    ],
)
def test_parts_of_the_next_worker_are_loaded_before_the_switch(
    opened: Open, tmp_path: Path, worker: Worker, next_worker: Worker, new: list[int]
) -> None:
    data = Recorded(tmp_path / "record")
    feed, plan = opened(data)

    step_of(feed, plan, 0, worker, next_worker)

    wait_for(lambda: set(new) <= set(data.fetched()))
    loaded = step_of(feed, plan, 1, next_worker)
    mine = [index for part in plan.parts(1, next_worker) for index in part.positions]
    assert [index for batch in loaded for index in batch[0].tolist()] == mine
    assert all(data.fetched().count(index) == 1 for index in mine)


def test_parts_that_stay_mine_are_not_loaded_again_at_a_switch(opened: Open, tmp_path: Path) -> None:
    data = Recorded(tmp_path / "record")
    feed, plan = opened(data)
    history = [Worker(2, 0), Worker(2, 0), Worker(1, 0), Worker(2, 0), Worker(3, 0), Worker(2, 0)]
    feed.stop_at(len(history))

    for step, worker in enumerate(history):
        step_of(feed, plan, step, worker)

    feed.close()
    counts = [data.fetched().count(index) for index in range(NUM_SAMPLES)]
    assert max(counts) == 2  # once in each epoch
    assert min(counts[:8]) == 2


def test_what_is_in_flight_stays_bounded_while_announcements_change(opened: Open, tmp_path: Path) -> None:
    data = Recorded(tmp_path / "record")
    feed, plan = opened(data, prefetch_factor=1, plan={"num_samples": NUM_SAMPLES})
    useful = 0
    for step in range(30):
        worker, others = Worker(8, step % 8), [Worker(1, 0), Worker(2, step % 2), Worker(8, 7), None]
        useful += sum(len(batch[0]) for batch in step_of(feed, plan, step, worker, others[step % 4]))
        waste_at_most = (step + 1) * 2 * (2 * MAX_DEPTHS)  # samples of a part × depths of two parts, every step
        assert len(data.fetched()) - useful <= waste_at_most
    assert useful == 60


def test_nothing_is_loaded_beyond_the_end_of_the_training(opened: Open, tmp_path: Path) -> None:
    data = Recorded(tmp_path / "record")
    calls: list[int] = []

    def order(epoch: int) -> list[int]:
        calls.append(epoch)
        return [list(range(NUM_SAMPLES))][epoch]

    feed, plan = opened(data, order=order, shuffle=None)
    feed.stop_at(plan.steps_per_epoch)
    for step in range(plan.steps_per_epoch):
        step_of(feed, plan, step, Worker(1, 0))

    assert sorted(data.fetched()) == list(range(NUM_SAMPLES))
    assert set(calls) == {0}


def test_a_worker_without_parts_loads_nothing_and_goes_on_when_it_gets_some(opened: Open, tmp_path: Path) -> None:
    data = Recorded(tmp_path / "record")
    feed, plan = opened(data, plan={"virtual_workers": 2})

    assert [step_of(feed, plan, step, Worker(3, 2)) for step in range(2)] == [[], []]
    assert data.fetched() == []
    assert step_of(feed, plan, 2, Worker(3, 0))[0][0].tolist() == list(range(32, 40))


# -- processes --------------------------------------------------------------------------------------------------------


def test_the_same_processes_load_for_the_whole_training(opened: Open, tmp_path: Path) -> None:
    feed, plan = opened(Recorded(tmp_path / "record"))

    pids = {
        pid
        for step in range(9)
        for batch in step_of(feed, plan, step, Worker(1 + step % 3, 0))
        for pid in batch[1].tolist()
    }

    assert len(pids) == 2
    assert os.getpid() not in pids
    feed.close()
    feed.close()
    assert all(has_ended(pid) for pid in pids)


def test_a_data_loaders_processes_are_started_as_it_says(opened: Open) -> None:
    class Told(Dataset[tuple[int, int, int]]):
        told = -1

        def __len__(self) -> int:
            return NUM_SAMPLES

        def __getitem__(self, index: int) -> tuple[int, int, int]:
            info = get_worker_info()
            return self.told, -1 if info is None else info.num_workers, torch.get_num_threads()

    def tell(worker_id: int) -> None:
        info = get_worker_info()
        assert info is not None
        info.dataset.told = worker_id + 70  # type: ignore[attr-defined]

    loader = DataLoader(
        Told(),
        batch_size=16,
        num_workers=2,
        prefetch_factor=3,
        worker_init_fn=tell,
        timeout=PATIENCE_S,
        collate_fn=list,
    )
    feed, plan = opened(loader, num_workers=0)

    seen = {sample for batch in step_of(feed, plan, 0, Worker(1, 0)) for sample in batch}

    assert seen == {(70, 2, 1), (71, 2, 1)}


def test_processes_are_started_before_the_first_part_and_draw_nothing(opened: Open, tmp_path: Path) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()

    opened([1] * NUM_SAMPLES, worker_init_fn=lambda worker: (tmp_path / f"began-{worker}").touch())

    wait_for(lambda: len(list(tmp_path.glob("began-*"))) == 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_an_error_in_a_loader_process_is_raised_with_the_users_traceback(opened: Open) -> None:
    feed, plan = opened(Failing(5, KeyError("no such file")))
    feed.begin_step(0, Worker(1, 0), None)
    parts = plan.parts(0, Worker(1, 0))
    assert [feed.load(part).tolist() for part in parts[:2]] == [[0, 1], [2, 3]]

    with pytest.raises(KeyError, match="no such file") as raised:
        feed.load(parts[2])

    text = "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value.__cause__, LoaderError)
    assert "raise self.error\nKeyError: 'no such file'" in text
    assert text.index("in loader process") < text.index("direct cause of")
    assert feed.load(parts[3]).tolist() == [6, 7]  # the others are not affected


def test_an_error_of_the_worker_init_function_is_raised_as_it_is(opened: Open) -> None:
    def begin(worker_id: int) -> None:
        raise FileNotFoundError("no data here")

    feed, plan = opened([1] * NUM_SAMPLES, worker_init_fn=begin)

    for step in range(2):
        with pytest.raises(FileNotFoundError, match="no data here"):
            step_of(feed, plan, step, Worker(1, 0))


def test_an_error_that_cannot_travel_is_told_in_words(opened: Open) -> None:
    feed, plan = opened(Failing(0, Unportable(1, 2)))

    with pytest.raises(TrainingError, match=r"could not be loaded: .*Unportable: 1 and 2") as raised:
        step_of(feed, plan, 0, Worker(1, 0))

    assert "raise self.error" in str(raised.value.__cause__)


def test_an_error_in_a_part_that_is_thrown_away_is_nobodys(opened: Open) -> None:
    feed, plan = opened(Failing(21, ValueError("of another worker in the end")))

    step_of(feed, plan, 0, Worker(4, 0), Worker(2, 0))
    for step in range(1, 3):
        step_of(feed, plan, step, Worker(4, 0))

    with pytest.raises(ValueError, match="of another worker"):
        step_of(feed, plan, 1, Worker(2, 0))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings(r"ignore:Exception ignored[\s\S]*DataLoader worker:pytest.PytestUnraisableExceptionWarning")
def test_a_killed_loader_process_ends_the_training_with_a_clear_error(opened: Open, tmp_path: Path) -> None:
    feed, plan = opened(Recorded(tmp_path / "record"))
    victim = step_of(feed, plan, 0, Worker(1, 0))[0][1].tolist()[0]

    def train() -> None:
        os.kill(victim, signal.SIGKILL)
        for step in range(1, 1000):
            step_of(feed, plan, step, Worker(1, 0))

    with pytest.raises(RuntimeError, match=rf"DataLoader worker (\(pid(\(s\))? {victim}\)|was killed)"):
        train()
    feed.close()
    gc.collect()  # torch's signal handler can raise while torch holds a temporary file open, or in a `__del__`


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings(r"ignore:Exception ignored[\s\S]*DataLoader worker:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_told", [True, False], ids=["torch tells of it", "nobody has noticed"])
def test_a_lock_that_a_killed_loader_process_held_keeps_nobody_from_ending(
    opened: Open, tmp_path: Path, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.train.data.loader_process._LOCK_S", 0.2)
    feed, plan = opened(Recorded(tmp_path / "record"))
    victim = step_of(feed, plan, 0, Worker(1, 0))[0][1].tolist()[0]
    assert isinstance(feed, MapFeed)
    prefetch: Any = feed._prefetch
    lock = prefetch._batches._workers_done_event._event._cond
    with lock:  # as held by a process that dies while it looks
        with contextlib.suppress(RuntimeError):  # torch's, wherever this thread is then
            os.kill(victim, signal.SIGKILL)
            for step in range(1, 1000 if is_told else 1):
                step_of(feed, plan, step, Worker(1, 0))
            wait_for(lambda: has_ended(victim))
        feed.close()
    gc.collect()


def test_ctrl_c_leaves_the_loader_processes_to_the_training_process(opened: Open, tmp_path: Path) -> None:
    feed, plan = opened(Recorded(tmp_path / "record"))
    pids = {pid for batch in step_of(feed, plan, 0, Worker(1, 0)) for pid in batch[1].tolist()}

    for pid in pids:
        os.kill(pid, signal.SIGINT)

    assert pids == {
        pid for s in range(1, 6) for batch in step_of(feed, plan, s, Worker(1, 0)) for pid in batch[1].tolist()
    }


@pytest.mark.gpu
@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_are_pinned_if_asked(opened: Open, num_workers: int) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    feed, plan = opened([torch.ones(3)] * NUM_SAMPLES, num_workers=num_workers, pin_memory=True)

    assert all(batch.is_pinned() for step in range(4) for batch in step_of(feed, plan, step, Worker(1, 0)))


SCRIPT = """
    import os, torch
    from pliant.train.data.feed import open_feed
    from pliant.train.data.loading import LoadSettings
    from pliant.train.data.sharding import ShardingPlan, Worker

    class Pids(torch.utils.data.Dataset):
        def __len__(self): return 48
        def __getitem__(self, index): return os.getpid()

    feed = open_feed(LoadSettings(data=Pids(), num_workers=2), seed=0)
    plan = ShardingPlan(num_samples=48, batch_size=16, virtual_workers=8)
    feed.bind(plan)
    feed.begin_step(0, Worker(1, 0), None)
    print(*{pid for part in plan.parts(0, Worker(1, 0)) for pid in feed.load(part).tolist()}, flush=True)
    input()
"""


def test_loader_processes_die_with_a_killed_task() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as task:
        assert task.stdout is not None
        pids = [int(pid) for pid in task.stdout.readline().split()]
        assert len(pids) == 2
        assert not any(has_ended(pid) for pid in pids)

        task.kill()

        wait_for(lambda: all(has_ended(pid) for pid in pids))


def test_a_part_can_be_loaded_again(opened: Open, tmp_path: Path) -> None:
    feed, plan = opened(Recorded(tmp_path / "record"))
    part = Part(0, 0, range(2), 16)
    feed.begin_step(0, Worker(1, 0), None)

    first, again = feed.load(part), feed.load(part)

    torch.testing.assert_close(first[2], again[2], rtol=0, atol=0)
    assert plan.parts(0, Worker(1, 0))[0] == part


def test_parts_are_requested_in_the_order_that_the_module_shows() -> None:
    plan = ShardingPlan(num_samples=48, batch_size=8, virtual_workers=4)
    requested: list[str] = []

    def request(part: Part) -> BatchRequest:
        requested.append(f"{part.step}.{part.virtual_worker}")
        return BatchRequest(0, part.positions.start, list(part.positions))

    fetcher = Fetcher(torch.arange(48), collate_fn=None, seed=0)
    prefetcher = Prefetcher(fetcher, LoaderProcesses(num_workers=1, prefetch_factor=2), plan, request)
    try:
        for step in range(3):
            prefetcher.begin_step(step, Worker(2, 0), Worker(1, 0))
            for part in plan.parts(step, Worker(2, 0)):
                prefetcher.load(part)
    finally:
        prefetcher.close()

    assert requested[:8] == ["0.0", "0.1", "1.0", "1.2", "1.1", "1.3", "2.0", "2.2"]
