"""Both of IBM's logger signatures are served, told apart by their parameters."""

import math
from typing import Any

import pytest

from pliant.ibm.modules.callbacks import LoggerCallback
from pliant.ibm.modules.pyedt.loggers import (
    LoggedMetrics,
    log_test,
    log_train,
    takes_metrics,
    train_lines,
    validation_lines,
)

READING = LoggedMetrics(values={"loss": 0.5, "accuracy": 0.75}, iteration=24, epoch=2, worker=3, workers=4)


class Recorder(LoggerCallback):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []


class Older(Recorder):
    def log_train_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.calls.append((loss, acc, completed_batch, worker))

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.calls.append((loss, acc, completed_batch, worker))


class WithoutWorker(Recorder):
    def log_train_metrics(self, loss: float, acc: float, completed_batch: int) -> None:
        self.calls.append((loss, acc, completed_batch))

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int) -> None:
        self.calls.append((loss, acc, completed_batch))


class Newer(Recorder):
    def log_train_metrics(self, metrics: dict[str, float], iteration: int, epoch: int, workers: int) -> None:
        self.calls.append((metrics, iteration, epoch, workers))

    def log_test_metrics(self, metrics: dict[str, float], iteration: int, epoch: int) -> None:
        self.calls.append((metrics, iteration, epoch))


class OtherNames(Recorder):
    def log_train_metrics(self, metrics: dict[str, float], completed_batch: int, epoch: int, worker: int = 0) -> None:
        self.calls.append((metrics, completed_batch, epoch, worker))

    def log_test_metrics(self, metrics: dict[str, float], completed_batch: int, epoch: int) -> None:
        self.calls.append((metrics, completed_batch, epoch))


@pytest.mark.parametrize(
    ("logger", "calls"),
    [
        (Older(), [(0.5, 75.0, 24, 3), (0.5, 75.0, 24, 3)]),
        (WithoutWorker(), [(0.5, 75.0, 24), (0.5, 75.0, 24)]),
        (Newer(), [(READING.values, 24, 2, 4), (READING.values, 0, 2)]),
        (OtherNames(), [(READING.values, 24, 2, 4), (READING.values, 0, 2)]),
    ],
)
def test_a_logger_is_called_in_its_own_form(logger: Recorder, calls: list[tuple[Any, ...]]) -> None:
    log_train(logger, READING)
    log_test(logger, READING)

    assert logger.calls == calls


def test_a_logger_that_overrides_nothing_is_fine() -> None:
    log_train(LoggerCallback(), READING)
    log_test(LoggerCallback(), READING)


def test_without_an_accuracy_the_older_form_gets_not_a_number() -> None:
    logger = Older()

    log_train(logger, LoggedMetrics(values={"loss": 0.5}, iteration=1, epoch=0, worker=0, workers=1))

    assert math.isnan(logger.calls[0][1])


def test_the_names_of_the_parameters_tell_the_form() -> None:
    assert not takes_metrics(Older().log_train_metrics)
    assert takes_metrics(Newer().log_train_metrics)
    assert takes_metrics(OtherNames().log_test_metrics)


def test_the_lines_have_the_grammar_that_log_readers_know() -> None:
    timestamp, *rest = train_lines(READING, batches=6)

    assert timestamp.startswith("Timestamp ")
    assert timestamp.endswith(", Iteration 24")
    assert rest == [
        "batches :6 0.5",
        "Iteration 24: tag train_loss, simple_value 0.5",
        "Iteration 24: tag train_accuracy, simple_value 0.75",
    ]
    assert validation_lines(READING) == [
        "Iteration 24: tag test_loss, simple_value 0.5",
        "Iteration 24: tag test_accuracy, simple_value 0.75",
    ]
