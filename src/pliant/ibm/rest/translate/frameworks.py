"""Frameworks: how a program is run. Five are built in; a file `NAME.conf` in the folder of frameworks adds one.

A plug-in's file is one JSON object with IBM's fields; keys that end in ` Desc` and unknown ones are left alone. Its
program runs as a fixed job, one process per worker. The command that it runs is the program that was sent, or what the
script `frameworkCmdGenerator` prints (`generator.py`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pliant.core.errors import InvalidInput
from pliant.core.job import MAX_VIRTUAL_WORKERS
from pliant.core.registry import NAME

MAX_CONF_BYTES = 1 << 20


class FrameworkKind(StrEnum):
    """How the tasks of a framework stand to each other."""

    SINGLE = "single"
    """One process."""
    FIXED = "distributed"
    """Processes that start, fail and end together and find each other as torchrun's do."""
    ELASTIC = "elastic"
    """Tasks that come and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How a program is run."""

    name: str
    kind: FrameworkKind
    desc: tuple[str, ...]
    app_name: str
    num_workers: int = 1
    """If the submission does not say."""
    max_workers: int = MAX_VIRTUAL_WORKERS
    max_gpu_per_worker: int = 64
    deploy_mode: str = "cluster"
    worker_memory: str = ""
    backend: str = "PyTorch"
    generator: Path | None = None
    """The script that prints the command."""
    plugged_in: bool = False


BUILT_IN: Final = (
    Framework(
        name="PyTorch",
        kind=FrameworkKind.SINGLE,
        desc=("PyTorch on one worker.", "--exec-start PyTorch --model-main PROGRAM [options]"),
        app_name="SingleNodePytorchTrain",
        max_workers=1,
    ),
    Framework(
        name="distPyTorch",
        kind=FrameworkKind.FIXED,
        desc=(
            "torch.distributed on a fixed number of workers, one process each, with torchrun's environment.",
            "--exec-start distPyTorch --numWorker N --model-main PROGRAM [options]",
        ),
        app_name="DistributePyTorchTrain",
    ),
    Framework(
        name="edtPyTorch",
        kind=FrameworkKind.ELASTIC,
        desc=(
            "Elastic distributed training: FabricModel, or pliant.train.Run, on one to N workers.",
            "--exec-start edtPyTorch --numWorker N --model-main PROGRAM [options]",
        ),
        app_name="ElasticPyTorchTrain",
    ),
    Framework(
        name="edtTensorflow",
        kind=FrameworkKind.ELASTIC,
        desc=(
            "Elastic distributed training of tensorflow.keras models with FabricModel, on Keras 3 and PyTorch.",
            "--exec-start edtTensorflow --numWorker N --model-main PROGRAM [options]",
        ),
        app_name="ElasticTensorflowTrain",
        backend="TensorFlow",
    ),
    Framework(
        name="edtKeras",
        kind=FrameworkKind.ELASTIC,
        desc=(
            "Elastic distributed training of Keras models with FabricModel, on Keras 3 and PyTorch.",
            "--exec-start edtKeras --numWorker N --model-main PROGRAM [options]",
        ),
        app_name="ElasticKerasTrain",
        backend="Keras",
    ),
)


class _Conf(BaseModel):
    """What is read of a plug-in's file."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    desc: Any = ()
    deployMode: str = "cluster"
    appName: Annotated[str, Field(min_length=1, max_length=120)]
    numWorkers: Annotated[int, Field(ge=1)] = 1
    maxWorkers: Annotated[int, Field(ge=1, le=MAX_VIRTUAL_WORKERS)] = MAX_VIRTUAL_WORKERS
    maxGPUPerWorker: Annotated[int, Field(ge=1, le=64)] = 64
    workerMemory: str = ""
    backend: str = ""
    frameworkCmdGenerator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frameworks:
    """All frameworks of a server as they stand now."""

    found: Mapping[str, Framework]
    broken: Mapping[str, str] = field(default_factory=dict)
    """Names of plug-ins that cannot be used, and why."""

    def get(self, name: str) -> Framework:
        """Return a framework.

        Raises:
            InvalidInput: there is none of this name, or its plug-in is broken.
        """
        if name in self.found:
            return self.found[name]
        why = self.broken.get(name)
        known = ", ".join(sorted(self.found))
        message = f"the plug-in {name!r} cannot be used: {why}" if why else f"there is no {name!r}; there are {known}"
        raise InvalidInput.at("--exec-start", message)


def load(folder: Path) -> Frameworks:
    """Return the built-in frameworks and those of a folder, read anew."""
    found = {framework.name: framework for framework in BUILT_IN}
    broken: dict[str, str] = {}
    for path in sorted(folder.glob("*.conf")):
        try:
            plugged = _read_plugin(path)
        except InvalidInput as error:
            broken[path.stem] = str(error)
            continue
        found[plugged.name] = plugged
    return Frameworks(found=found, broken=broken)


def _read_plugin(path: Path) -> Framework:
    name = path.stem
    if not re.fullmatch(NAME, name):
        raise _wrong(path, "its name is not letters, digits, dots, dashes and underscores; rename it")
    if any(framework.name == name for framework in BUILT_IN):
        raise _wrong(path, f"{name} is built in; give the plug-in another name")
    try:
        if path.stat().st_size > MAX_CONF_BYTES:
            raise _wrong(path, f"it is larger than {MAX_CONF_BYTES >> 20} MiB")
        conf = _Conf.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise _wrong(path, f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _wrong(path, _explain(error)) from error
    return Framework(
        name=name,
        kind=FrameworkKind.SINGLE if conf.maxWorkers == 1 else FrameworkKind.FIXED,
        desc=_lines(conf.desc),
        app_name=conf.appName,
        num_workers=min(conf.numWorkers, conf.maxWorkers),
        max_workers=conf.maxWorkers,
        max_gpu_per_worker=conf.maxGPUPerWorker,
        deploy_mode=conf.deployMode,
        worker_memory=conf.workerMemory,
        backend=conf.backend,
        generator=_generator(path, conf.frameworkCmdGenerator) if conf.frameworkCmdGenerator else None,
        plugged_in=True,
    )


def _generator(path: Path, name: str) -> Path:
    script = path.parent / name
    if Path(name).name != name or not script.is_file():
        raise _wrong(path, f"frameworkCmdGenerator {name!r} is no file beside it; put it there")
    return script


def _explain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        parts = (f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in error.errors())
        return "; ".join(parts)
    return f"it is not JSON ({error})"


def _lines(desc: object) -> tuple[str, ...]:
    """Return the lines of a description: a text, a list of texts, or a list of objects with texts."""
    if isinstance(desc, str):
        return (desc,)
    if isinstance(desc, dict):
        return tuple(str(value) for value in desc.values())
    if isinstance(desc, list | tuple):
        return tuple(line for part in desc for line in _lines(part))
    return ()


def _wrong(path: Path, message: str) -> InvalidInput:
    return InvalidInput.at(path.name, message)
