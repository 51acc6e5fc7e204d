"""`from callbacks import Callback, LoggerCallback`: what a script hands to `FabricModel` to be called back.

A subclass overrides what it wants to hear. Subclasses need not call `__init__` of these classes. Before training
starts, `params` holds `epochs` (how many), `optimizer` and `batch_size` (samples of a virtual worker), and `model`
is the module.
"""

from collections.abc import Mapping
from typing import Any


class Callback:
    """Called in every task at the borders of the training and of its epochs, which count from 0."""

    params: Mapping[str, Any] = {}
    model: Any = None

    def on_train_begin(self) -> None: ...

    def on_train_end(self) -> None: ...

    def on_epoch_begin(self, epoch: int) -> None:
        """Hear that an epoch begins; a learning rate is set here, through `self.params["optimizer"].param_groups`."""

    def on_epoch_end(self, epoch: int) -> None: ...


class LoggerCallback:
    """Called with metrics: as `driver_logger` on the leader with means, as `worker_logger` in every task with its own.

    A subclass may define `log_train_metrics` and `log_test_metrics` in either of IBM's two forms:
    `(loss, acc, completed_batch, worker=0)`, where `acc` comes in percent, or `(metrics, iteration, epoch, workers)`
    and `(metrics, iteration, epoch)`, where `metrics["accuracy"]` comes as a fraction. The names of the parameters
    tell which.
    """

    params: Mapping[str, Any] = {}
    model: Any = None

    def on_train_begin(self) -> None: ...

    def on_train_end(self) -> None: ...

    def log_train_metrics(self, *values: Any) -> None: ...

    def log_test_metrics(self, *values: Any) -> None: ...
