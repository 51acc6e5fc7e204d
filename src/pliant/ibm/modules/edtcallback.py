"""`from edtcallback import EDTLoggerCallback, EDTTrainCallback`, for scripts sent without their own copy."""

import time
from pathlib import Path

from pliant.ibm.modules.callbacks import Callback, LoggerCallback
from pliant.ibm.modules.elog import ELog
from pliant.ibm.modules.emetrics import EMetrics


class EDTLoggerCallback(LoggerCallback):
    """Write every report of the training to `evaluation-metrics.txt` and to the task's `stdout`."""

    def __init__(self) -> None:
        self.gs = 0

    def log_train_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.gs += 1
        fraction = acc / 100
        with EMetrics.open() as metrics:
            metrics.record(EMetrics.TRAIN_GROUP, completed_batch, {"loss": loss, "accuracy": fraction})
        with ELog.open() as log:
            log.recordTrain("Train", completed_batch, self.gs, loss, fraction, worker)

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        fraction = acc / 100
        with EMetrics.open() as metrics:
            metrics.record(EMetrics.TEST_GROUP, completed_batch, {"loss": loss, "accuracy": fraction})
        with ELog.open() as log:
            log.recordTest("Test", loss, fraction, worker)


class EDTTrainCallback(Callback):
    """Write the end of every epoch, and how long the training took, to the task's `stdout`."""

    def __init__(self, output_model_path: str | Path) -> None:
        super().__init__()
        self.output_model_path = output_model_path
        self.started_at = time.time()

    def on_epoch_end(self, epoch: int) -> None:
        total = self.params["epochs"]
        with ELog.open() as log:
            log.recordText(f"epoch {epoch} of {total} ended")
            if epoch == total - 1:
                log.recordText(f"training took {(time.time() - self.started_at) / 60:.2f} minutes")
