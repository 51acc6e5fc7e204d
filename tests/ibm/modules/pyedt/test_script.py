"""What a script gives is checked at once, and the global batch is fixed before anything is granted."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.ibm.modules.pyedt.script import fit_schedule, parse_schedule, parse_script

TRAIN: dict[str, Any] = {
    "epoch_number": 2,
    "batch_size": 16,
    "engines_number": None,
    "num_dataloader_threads": 0,
    "validation_freq": 1,
    "checkpoint_freq": 1,
    "effective_batch_size": None,
    "worker_memory": None,
    "driver_memory": None,
    "accumulate": 1,
}
MODEL = torch.nn.Linear(2, 2)
PARTS: dict[str, Any] = {
    "model": MODEL,
    "datasets_function": lambda: ([], []),
    "loss_function": torch.nn.functional.cross_entropy,
    "optimizer": torch.optim.SGD(MODEL.parameters(), lr=0.1),
    "metrics": None,
    "driver_logger": None,
    "worker_logger": None,
    "user_callback": None,
    "fn_step_train": None,
    "fn_test": None,
    "enable_onnx": False,
    "scale_up_function": None,
    "collate_fn": None,
    "schedulers": None,
    "epoch_schedulers": None,
    "scaler": None,
    "autocast": None,
    "clip_norm": None,
    "clip_value": None,
}

sizes = st.integers(1, 5000)


@given(batch=sizes, engines=sizes, job_workers=sizes)
def test_the_global_batch_is_batch_size_times_engines(batch: int, engines: int, job_workers: int) -> None:
    schedule = parse_schedule({**TRAIN, "batch_size": batch, "engines_number": engines}, job_workers)

    assert (schedule.global_batch, schedule.virtual_workers) == (batch * engines, engines)


@given(batch=sizes, engines=sizes, num_samples=sizes)
def test_a_small_data_set_gets_the_engines_that_it_can_feed(batch: int, engines: int, num_samples: int) -> None:
    asked = parse_schedule({**TRAIN, "batch_size": batch, "engines_number": engines}, 8)

    fitted, notes = fit_schedule(asked, num_samples)

    if num_samples >= batch * engines:
        assert (fitted, notes) == (asked, ())
        return
    assert 1 <= fitted.virtual_workers <= engines
    assert fitted.virtual_workers <= fitted.global_batch <= num_samples
    assert fitted.global_batch == min(num_samples, batch * fitted.virtual_workers)
    assert num_samples < fitted.global_batch + batch, "one engine more could not be fed"
    assert f"{num_samples} samples" in notes[0]


def test_a_schedule_of_an_effective_batch_fits_as_well() -> None:
    asked = parse_schedule({**TRAIN, "effective_batch_size": 150}, 8)
    assert (asked.virtual_workers, asked.global_batch) == (10, 150)
    fitted, _ = fit_schedule(asked, 100)
    assert (fitted.virtual_workers, fitted.global_batch) == (6, 96)
    assert fit_schedule(asked, 0) == (asked, ())


@given(batch=sizes, job_workers=sizes)
def test_without_engines_the_jobs_virtual_workers_count(batch: int, job_workers: int) -> None:
    schedule = parse_schedule({**TRAIN, "batch_size": batch}, job_workers)

    assert (schedule.global_batch, schedule.virtual_workers) == (batch * job_workers, job_workers)


@given(batch=sizes, effective=sizes, job_workers=sizes)
def test_an_effective_batch_is_kept_and_cut_into_parts_of_at_most_batch_size(
    batch: int, effective: int, job_workers: int
) -> None:
    schedule = parse_schedule({**TRAIN, "batch_size": batch, "effective_batch_size": effective}, job_workers)

    largest_part = -(-effective // schedule.virtual_workers)
    assert schedule.global_batch == effective
    assert largest_part <= batch
    assert min(job_workers, effective) <= schedule.virtual_workers <= effective


def test_both_ways_to_fix_the_global_batch_are_refused() -> None:
    with pytest.raises(InvalidInput, match="effective_batch_size: given as 64, together with engines_number=4"):
        parse_schedule({**TRAIN, "engines_number": 4, "effective_batch_size": 64}, 8)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch_number", 0),
        ("epoch_number", "3"),
        ("batch_size", -1),
        ("batch_size", 2.5),
        ("engines_number", 0),
        ("effective_batch_size", True),
        ("validation_freq", 0),
        ("checkpoint_freq", -1),
        ("num_dataloader_threads", None),
    ],
)
def test_numbers_out_of_bounds_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: got {value!r}; give a whole number"):
        parse_schedule({**TRAIN, name: value}, 8)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule({**TRAIN, "epoch_number": 0, "batch_size": "x", "engines_number": 0}, 8)

    assert [problem.field for problem in caught.value.problems] == ["epoch_number", "batch_size", "engines_number"]


def test_parts_of_another_framework_are_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_script({**PARTS, "model": "keras", "loss_function": "categorical_crossentropy", "optimizer": "adam"})

    assert [problem.field for problem in caught.value.problems] == ["model", "optimizer", "loss_function"]
    assert "give a function (names are for Keras models)" in str(caught.value)


def test_a_metric_has_the_name_of_its_function() -> None:
    def top_5(outputs: object, labels: object) -> float:
        return 1.0

    assert list(parse_script({**PARTS, "metrics": [top_5]}).metrics) == ["top_5"]


def test_several_optimizers_have_names() -> None:
    first, second = (torch.optim.SGD(MODEL.parameters(), lr=0.1) for _ in range(2))

    assert parse_script({**PARTS, "optimizer": first}).optimizers == {"0": first}
    assert parse_script({**PARTS, "optimizer": [first, second]}).optimizers == {"0": first, "1": second}
    assert parse_script({**PARTS, "optimizer": {"a": first}}).optimizers == {"a": first}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("optimizer", torch.optim.LBFGS(MODEL.parameters()), "LBFGS computes the loss again inside its step"),
        ("optimizer", [], "no optimizer was given"),
        ("autocast", "fp16", "give torch.bfloat16 or torch.float16"),
    ],
)
def test_what_cannot_be_trained_with_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_script({**PARTS, field: value})

    assert [problem.field for problem in caught.value.problems] == [field]


def test_one_callback_or_several_are_taken() -> None:
    one = object()

    assert parse_script({**PARTS, "user_callback": one}).callbacks == (one,)
    assert parse_script({**PARTS, "user_callback": [one, one]}).callbacks == (one, one)
    assert parse_script(PARTS).callbacks == ()
