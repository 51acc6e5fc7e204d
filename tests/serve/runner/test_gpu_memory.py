"""What a kernel may allocate of a GPU that it shares: the numbers; torch's own calls are played by a double."""

from types import SimpleNamespace

import pytest
import torch

from pliant.core.slot import WHOLE_SLOT
from pliant.serve.runner.gpu_memory import keep_to_part_of_gpu, part_of_gpu

GB = 1 << 30


@pytest.fixture
def fractions(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A GPU of 80 GB; what torch is told of it."""
    told: list[float] = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=80 * GB))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", told.append)
    return told


def test_a_quarter_of_a_gpu_leaves_room_for_the_drivers_own(fractions: list[float]) -> None:
    keep_to_part_of_gpu(250)

    assert fractions == [pytest.approx((20 * GB - (600 << 20)) / (80 * GB))]


def test_a_small_part_keeps_half_of_it_for_the_model(fractions: list[float]) -> None:
    keep_to_part_of_gpu(10)

    assert fractions == [pytest.approx(0.005)]


def test_whole_gpus_and_cpus_have_no_limit(fractions: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    keep_to_part_of_gpu(WHOLE_SLOT)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    keep_to_part_of_gpu(250)

    assert not fractions
    assert part_of_gpu(250) is None
