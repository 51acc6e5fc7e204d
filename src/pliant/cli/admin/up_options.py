"""Options of `up` that are passed on as they are: endpoints, proxies, walls, messages at the end of jobs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pliant.cli.fields import Given, Table, ask, options_of
from pliant.entry.server.notices import refuse_password

_TABLE: Final[Table] = {
    "serve_port": ask("Where endpoints are asked; default: the next port; 0: any free one.", metavar="N", type=int),
    "serve_grpc_port": ask("The same over gRPC; default: the port after it; 0: any free one.", metavar="N", type=int),
    "serve_processes": ask("So many answer requests to endpoints side by side; default: 1.", metavar="N", type=int),
    "serve_on": ask(
        "Answer requests to endpoints on this machine of the pool as well; repeatable.",
        metavar="MACHINE",
        type=list[str],
    ),
    "cluster": ask(
        "agents: other machines may join, with `pliant agent`; auto, ray://HOST:PORT: those of a Ray cluster do. Needs "
        "--tls and a --host that they reach.",
        metavar="agents|auto|ray://…",
        type=str,
    ),
    "agent_port": ask("Where their agents connect; default: 7314; 0: any free one.", metavar="N", type=int),
    "interface": ask(
        "Where their tasks reach this machine's: an interface, an address or a network.", metavar="NAME", type=str
    ),
    "orphan_s": ask(
        "An agent that reaches no server ends its tasks after so many seconds; default: 60.", metavar="S", type=float
    ),
    "machine_name": ask("Of this machine in the pool; default: its host name.", metavar="NAME", type=str),
    "agent_dir": ask(
        "Folder of this machine alone for its agent; default: below /var/lib or your home.", metavar="DIR", type=Path
    ),
    "shared": ask(
        "A folder that all machines see at the same path, and must: nothing in it is copied; repeatable.",
        metavar="DIR",
        type=list[str],
    ),
    "encrypt_state": ask(
        "Encrypt state that tasks on different machines send each other.", "--encrypt-state", type=bool
    ),
    "ray_machines": ask(
        "Ask Ray's autoscaler for so many machines, as jobs need them; repeatable, for kinds such as "
        "gpu=0..8,slots=8,gpus=8,idle=10m,label=gpu=a100.",
        metavar="[NAME=]MIN..MAX[,…]",
        type=list[str],
    ),
    "ray_slots": ask("Slots of a new one; default: one is asked for, to see.", metavar="N", type=int),
    "ray_idle": ask("Give one back that has had no task for so long; default: 5m.", metavar="TIME", type=str),
    "root_path": ask(
        "A proxy shows the server below this path, such as /pliant; or PLIANT_ROOT_PATH.", metavar="PATH", type=str
    ),
    "trusted_proxy": ask(
        "Believe this proxy who sent a request; an address or a network; repeatable.",
        metavar="ADDRESS",
        type=list[str],
    ),
    "uids": ask("System ids for people, one each, if root starts it; or off.", metavar="FIRST-LAST", type=str),
    "allow": ask("A folder that every script may read, or write to; repeatable.", metavar="PATH[:rw]", type=list[str]),
    "results_to": ask(
        "Copy what jobs write to an object store: s3://BUCKET/PREFIX, gs://… or file:///FOLDER.",
        metavar="URL",
        type=str,
    ),
    "max_disk": ask(
        "What a job may have on this machine's disk, such as 500GiB; or off. Default: a tenth of it.",
        metavar="SIZE",
        type=str,
    ),
    "max_log": ask(
        "What a task may have in its stdout, and in its stderr; the middle goes. Default: 256MiB; or off.",
        metavar="SIZE",
        type=str,
    ),
    "pass_env": ask("A variable that every script gets from here; repeatable.", metavar="NAME", type=list[str]),
    "allow_webhook": ask(
        "Webhooks may lead there; a host or a network; repeatable.", metavar="HOST[:PORT]", type=list[str]
    ),
    "smtp": ask(
        "Send e-mail by it; its password: PLIANT_SMTP_PASSWORD.", metavar="smtp[s]://[USER@]HOST[:PORT]", type=str
    ),
    "smtp_password_file": ask("Holds the password of --smtp; mode 600.", metavar="FILE", type=Path),
    "mail_from": ask("The address that e-mail comes from.", metavar="ADDRESS", type=str),
    "mail_domain": ask("Send e-mail to addresses there only; repeatable.", metavar="DOMAIN", type=list[str]),
}
UP_OPTIONS: Final = options_of(object, _TABLE)


def up_arguments(given: Given) -> list[str]:
    """Return the arguments of the server for what was given.

    Raises:
        InvalidInput: a password would stand on its command line.
    """
    if "smtp" in given:
        refuse_password(given["smtp"])
    return arguments_given(given)


def arguments_given(given: Given) -> list[str]:
    """Return what was given by the names of its fields as a process reads it."""
    return arguments_of({f"--{name.replace('_', '-')}": value for name, value in given.items()})


def arguments_of(options: Mapping[str, object]) -> list[str]:
    """Return options as the server's process reads them; None is not given, a list is given piece by piece."""
    arguments = []
    for name, value in options.items():
        if isinstance(value, bool):
            arguments += [name] * value
            continue
        values = value if isinstance(value, list) else [] if value is None else [value]
        whole = [one.expanduser().absolute() if isinstance(one, Path) else one for one in values]
        arguments += [f"{name}={one}" for one in whole]
    return arguments
