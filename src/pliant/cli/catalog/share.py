"""The command `share`, and how all that is shared is said."""

from collections.abc import Sequence
from typing import Annotated

import typer

from pliant.cli.options import JobArgument, JsonOption, name_argument
from pliant.cli.screen import print_outcome
from pliant.cli.session import job_id_of, open_client

NamesArgument = Annotated[list[str] | None, name_argument("user", "Users; * is everybody.", metavar="USER")]
RemoveOption = Annotated[bool, typer.Option("--remove", help="Take it back from them.")]


def share(
    context: typer.Context,
    job: JobArgument,
    names: NamesArgument = None,
    remove: RemoveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let others see a job of yours, its logs and results.

    They cannot change it. Without names it tells who sees the job.

    \b
    pliant share digits ann bob
    pliant share 3 '*'
    pliant share 3 ann --remove
    """
    with open_client(context) as client:
        job_id = job_id_of(client, job)
        view = client.shares(job_id)
        if names:
            view = client.share(job_id, shared_after(view.shared_with, names, remove=remove), revision=view.revision)
    print_outcome(view, f"{job_id} is {view.owner}'s and shared with {who(view.shared_with)}", as_json=as_json)


def shared_after(before: Sequence[str], names: Sequence[str], *, remove: bool) -> tuple[str, ...]:
    """Return who sees a thing after it was shared with these people, or taken back from them."""
    others = [name for name in before if name not in names]
    return tuple(others if remove else [*others, *names])


def who(names: Sequence[str]) -> str:
    """Return these people in words."""
    return ", ".join("everybody" if name == "*" else name for name in names) or "nobody"
