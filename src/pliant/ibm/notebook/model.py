"""`FabricModel` outside of tasks: its `train` runs on a server if it is called in a kernel and a server is known."""

import inspect
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from pliant.client import Client, NotedJob, TooLarge
from pliant.client.folders.pack import Limits
from pliant.client.nouns.notebook import in_kernel
from pliant.ibm.modules.pyedt import model as in_tasks
from pliant.ibm.modules.pyedt.script import LEAST_ENGINES, parse_schedule
from pliant.ibm.notebook.remote import fetch_model, find_client, follow
from pliant.ibm.notebook.shipment import SCRIPT, write_shipment

_LIMITS: Final = Limits(max_packed_bytes=512 << 20)
"""As many bytes as a server takes."""
_WEIGHTS: Final = "model_epoch_final.pth"
_OPTIMIZER: Final = "model_epoch_final_optimizer_state.pth"


class FabricModel(in_tasks.FabricModel):
    """A training that grows and shrinks; in a notebook, on slots that it takes for as long as `train` runs."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """Take the parts of a training, as `pliant.ibm.modules.pyedt.model.FabricModel` does."""
        super().__init__(*args, **keywords)
        self._given = _named(in_tasks.FabricModel.__init__, (self, *args), keywords)
        self._job_id: str | None = None

    def train(self, *args: Any, submit: Mapping[str, Any] | bool | None = None, **keywords: Any) -> None:
        """Train; return when all epochs are done and `model` has the trained weights.

        Args:
            submit: Pliant's own: how the job is submitted, as fields of `JobRequest`, such as
                `{"queue": "research", "dataset": "digits"}`; False: train here, by itself; True: on a server, or not at
                all. If left out: on a server if this is a notebook and one is known.

        Raises:
            TypeError, InvalidInput: as for the `train` of tasks; or a part cannot be sent.
            Unavailable: the server does not answer.
            TrainingError: the job failed, or somebody stopped it.
        """
        client = _client(submit)
        if client is None:
            self._job_id = None
            super().train(*args, **keywords)
            return
        with client:
            self._train_on(client, _named(in_tasks.FabricModel.train, (self, *args), keywords), submit)

    def download(self, out_dir: str = "/tmp") -> str:
        """Write the trained model into `out_dir` as JOB_ID.zip and return its path."""
        if self._job_id is None:
            return super().download(out_dir)
        client = _client(True)
        assert client is not None, "it raises if there is none"
        with client:
            return str(fetch_model(client, self._job_id, Path(out_dir)))

    def _train_on(self, client: Client, given: Mapping[str, Any], submit: Mapping[str, Any] | bool | None) -> None:
        schedule = {name: given.get(name, default) for name, default in _defaults().items()}
        parse_schedule(schedule, LEAST_ENGINES)  # what is wrong is told before anything is sent
        fields = job_fields(schedule, {} if isinstance(submit, bool) else submit or {})
        with tempfile.TemporaryDirectory(prefix="pliant-notebook-") as folder:
            code = Path(folder)
            converter = self._script.converter
            parts = self._given if converter is None else converter.to_send(self._given)
            write_shipment(code, parts, given, beside=Path.cwd(), modules=dict(sys.modules))
            job = _send(client, code, fields)
        self._job_id = job.id
        follow(client, job, num_epochs=schedule["epoch_number"])
        with tempfile.TemporaryDirectory(prefix="pliant-notebook-") as folder:
            to = client.result(job.id, Path(folder) / "result", only=[_WEIGHTS, _OPTIMIZER])
            self._load(to / "model" / "train")

    def _load(self, folder: Path) -> None:
        """Give the notebook's own model and optimizer what the job has come to."""
        script = self._script if self._script.converter is None else self._script.converter.bind(self._script)
        script.module.load_state_dict(torch.load(folder / _WEIGHTS, map_location="cpu", weights_only=True))
        states = torch.load(folder / _OPTIMIZER, map_location="cpu", weights_only=True)
        optimizers = script.optimizers
        for name, optimizer in optimizers.items():
            optimizer.load_state_dict(states[name] if len(optimizers) > 1 else states)


def job_fields(schedule: Mapping[str, Any], submit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the job for the keywords of `train`: as many tasks as engines, or as a batch has parts."""
    engines, effective = schedule["engines_number"], schedule["effective_batch_size"]
    most = engines or min(LEAST_ENGINES, effective or LEAST_ENGINES)
    fields: dict[str, Any] = {"name": "notebook", "script": SCRIPT, "max_tasks": most, **submit}
    data_dir = os.environ.get("DATA_DIR")
    if data_dir and not {"dataset", "data_dir"} & fields.keys():
        fields["data_dir"] = data_dir
    return fields


def _send(client: Client, code: Path, fields: Mapping[str, Any]) -> NotedJob:
    try:
        return client.submit(code, limits=_LIMITS, **fields).job
    except TooLarge as error:
        raise TooLarge(
            f"the model, and what its functions refer to, are too much to send ({error}): read data inside "
            f"`datasets_function`, from DATA_DIR or a data set"
        ) from error


def _client(submit: Mapping[str, Any] | bool | None) -> Client | None:
    """Return a client if the training is for a server."""
    if submit is False or (submit is None and not in_kernel()):
        return None
    return find_client(is_needed=submit is not None)


def _named(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function was called with, by the names of its parameters, without `self`."""
    bound = inspect.signature(function).bind(*args, **keywords).arguments
    return {
        **{name: value for name, value in bound.items() if name not in ("self", "unknown")},
        **bound.get("unknown", {}),
    }


def _defaults() -> dict[str, Any]:
    parameters = inspect.signature(in_tasks.FabricModel.train).parameters
    return {name: parameters[name].default for name in in_tasks.TRAIN_KEYWORDS}
