"""The options that IBM's `args` may hold, and how far each means something here. One table; docs/wmla.md shows it.

An option that is not listed belongs to the person's program.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Takes(StrEnum):
    """What follows an option."""

    NOTHING = "nothing"
    TEXT = "text"
    WHOLE = "a whole number"
    AMOUNT = "a number"
    """May be a fraction."""


class Support(StrEnum):
    """How far an option, or a route, means here what it means with IBM."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option."""

    name: str
    """With its dashes."""
    takes: Takes = Takes.TEXT
    support: Support = Support.YES
    how: str
    """What it does here; if nothing, why not."""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Whether it may be given several times; of others the last one counts."""
    secret: bool = False
    """Its value is kept nowhere."""


def _no(name: str, why: str, takes: Takes = Takes.TEXT, *, many: bool = False, secret: bool = False) -> Flag:
    return Flag(name=name, takes=takes, support=Support.NO, how=why, many=many, secret=secret)


_IMAGE = "tasks are processes, not containers; make an environment and name it with --conda-env-name"
_LIMIT = "a task has its slots, and no other share of a machine is measured out"
_DRIVER = "there is no driver process: the task of rank 0 does its work"
_PLACING = "the scheduler places tasks on nodes by their free slots"
_FORWARDING = "metrics are not forwarded; read them at /v1/jobs/JOB/metrics or follow /v1/events/stream"
_KUBERNETES = "there is no Kubernetes job to put it on"
_RIGHTS = "tasks run as the user that runs the server"
_MPI = "there is no MPI launcher; processes find each other by MASTER_ADDR and MASTER_PORT"
_CONNECTION = "it is for the command line client itself, and is dropped"

_CODE = (
    Flag(name="--exec-start", how="the framework to run; GET /execs/frameworks lists them"),
    Flag(name="--model-main", how="the program, relative to the folder that was sent; main.py if left out"),
    Flag(name="--model-dir", how="the name of the folder that was sent as a tar"),
    Flag(name="--user-cmd", takes=Takes.NOTHING, how="the words after -- are the whole command"),
    _no("--pbmodel-name", "there are no prebuilt models: a submission that asks for one is refused"),
    _no("--pbmodel-cmd", "there are no prebuilt models"),
)
_IDENTITY = (
    Flag(name="--appName", how="the name of the job"),
    Flag(name="--consumer", how="the queue of this name, or of the path's last part that names one"),
    Flag(name="--ig", how="the queue of this name"),
    Flag(name="--submit-user", support=Support.PARTLY, how="the submitter is who has logged on; another name is told"),
)
_ENVIRONMENT = (
    Flag(
        name="--conda-env-name",
        how="the environment, or the conda environment, of this name; one that is not there is refused",
    ),
    Flag(
        name="--python-version", support=Support.PARTLY, how="compared with the Python that runs; a difference is told"
    ),
    Flag(
        name="--conda-home",
        support=Support.PARTLY,
        how="where --conda-env-name is looked for first, in the folder envs; nothing without that",
    ),
    _no("--conda-env-yaml", "environments are made before, from exact versions; a file that is sent is not used"),
    _no("--conda-package", "environments are made before, from exact versions; a file that is sent is not used"),
    _no("--msd-image-name", _IMAGE),
    _no("--msd-image-pull-secret", _IMAGE),
    Flag(name="--msd-image-pull-policy", support=Support.NO, how=_IMAGE, choices=("Always", "Never", "IfNotPresent")),
)
_DATA = (
    Flag(
        name="--cs-datastore-meta",
        support=Support.PARTLY,
        how="type=fs,data_path=PATH: a data set, a folder below the data root, or a whole path; it is DATA_DIR. "
        "Without data_path that is the data root",
    ),
    Flag(
        name="--data-source",
        support=Support.PARTLY,
        how="a JSON list; the first path of type fs is taken as with --cs-datastore-meta, and wins over it",
    ),
)
_WORKERS = (
    Flag(name="--numWorker", takes=Takes.WHOLE, how="tasks: the most of an elastic job, exactly so many of another"),
    Flag(
        name="--workerDeviceNum",
        takes=Takes.AMOUNT,
        support=Support.PARTLY,
        how="slots of every task; a fraction is rounded up, and 0 is 1, and that is told",
    ),
    Flag(
        name="--workerDeviceType",
        support=Support.PARTLY,
        how="told: a pool has slots of one kind, and tasks get those",
        choices=("cpu", "gpu"),
    ),
    Flag(name="--gpuPerWorker", takes=Takes.AMOUNT, support=Support.PARTLY, how="as --workerDeviceNum, which wins"),
    Flag(
        name="--edt-options",
        support=Support.PARTLY,
        how="maxWorkers=N as --numWorker, which wins; what else it holds is told",
    ),
    _no("--workerMemory", _LIMIT),
    _no("--workerCPULimit", _LIMIT),
    _no("--workerGPULimit", _LIMIT),
    Flag(
        name="--workerMemoryLimit",
        how="a worker that uses more, with all that it has started, is ended; bytes, or with K, M, G or T at the end",
    ),
    _no("--numPs", "there are no parameter servers: gradients are summed by the tasks themselves", Takes.WHOLE),
)
_DRIVERS = (
    _no("--numDriver", _DRIVER, Takes.WHOLE),
    Flag(name="--driverDeviceType", support=Support.NO, how=_DRIVER, choices=("cpu", "gpu")),
    _no("--driverDeviceNum", _DRIVER),
    _no("--driverMemory", _DRIVER),
    _no("--driverCPULimit", _DRIVER),
    _no("--driverGPULimit", _DRIVER),
    _no("--driverMemoryLimit", _DRIVER),
)
_SECURITY = (
    _no("--sc-runasuser", _RIGHTS, Takes.WHOLE),
    _no("--sc-runasgroup", _RIGHTS, Takes.WHOLE),
    _no("--sc-fsgroup", _RIGHTS, Takes.WHOLE),
)
_METRICS = (
    _no("--cs-rmq-meta", _FORWARDING, secret=True),
    _no("--cs-url-meta", _FORWARDING),
    _no("--cs-url-bearer", _FORWARDING, secret=True),
)
_SCHEDULING = (
    Flag(name="--msd-env", many=True, how="NAME=VALUE, an environment variable of every task"),
    Flag(
        name="--msd-priority",
        takes=Takes.WHOLE,
        support=Support.PARTLY,
        how="1 to 10000; a larger one counts as 10000, and that is told",
    ),
    _no("--msd-attr", _KUBERNETES, many=True),
    _no("--msd-label", _KUBERNETES, many=True),
    _no("--msd-task0-node-selector", _PLACING),
    _no("--msd-task12n-node-selector", _PLACING),
    _no("--msd-pending-timeout", "a job waits for its slots until it is stopped", Takes.WHOLE),
    _no("--msd-podaffinity-rule", _PLACING),
    _no("--msd-podaffinity-topology-key", _PLACING),
    _no("--msd-pack-id", "a slot belongs to one task"),
    _no("--lsf-gpu-syntax", "there is no LSF"),
)
_FIRST_GENERATION = (
    _no("--mpiarg", _MPI, many=True),
    _no("--accelerators", _MPI),
    _no("--ddl_opts", _MPI),
    _no("--exclusive", "slots are never shared", Takes.NOTHING),
)
_OTHER = (
    Flag(
        name="--debug-level",
        support=Support.PARTLY,
        how="given to the program as DLI_LOGGER_LEVEL",
        choices=("debug", "info", "warn", "error"),
    ),
    _no("--jwt-token", _CONNECTION, secret=True),
    _no("--query-args", _CONNECTION),
)

FLAGS: Final[Mapping[str, Flag]] = {
    flag.name: flag
    for group in (
        _CODE,
        _IDENTITY,
        _ENVIRONMENT,
        _DATA,
        _WORKERS,
        _DRIVERS,
        _SECURITY,
        _METRICS,
        _SCHEDULING,
        _FIRST_GENERATION,
        _OTHER,
    )
    for flag in group
}
