"""The command `agent`: this machine works for a server that runs on another one."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.cli.admin.up_options import arguments_given, arguments_of
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.core.errors import InvalidInput
from pliant.files.machine_folder import machine_folder

JoinOption = Annotated[
    str | None,
    typer.Option(metavar="HOST[:PORT]", help="Where the server listens for agents; once will do.", show_default=False),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Holds the join token; left out, it is asked for.", show_default=False),
]
NameOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of this machine; default: its host name.", show_default=False)
]
SlotsOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="CPU slots; default: one per GPU, or per CPU.", show_default=False),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="What resource groups choose this machine by.", show_default=False),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder of this machine alone; default: below /var/lib or your home.", show_default=False
    ),
]


_TABLE: Final[Table] = {
    "interface": ask(
        "Where other machines reach its tasks: an interface, an address or a network; default: where packets to the "
        "server leave.",
        metavar="NAME",
        type=str,
    ),
    "serve_host": ask(
        "Where people reach models on this machine, if the server has it serve (pliant up --serve-on); default: as "
        "--interface.",
        metavar="ADDRESS",
        type=str,
    ),
    "serve_name": ask("How people who ask models name this machine; default: the address.", metavar="NAME", type=str),
    "serve_certificate": ask("The certificate that they see (PEM); default: one is made.", metavar="FILE", type=Path),
    "serve_key": ask("The private key of that certificate (PEM).", metavar="FILE", type=Path),
}


@takes(options_of(object, _TABLE))
def agent(
    join: JoinOption = None,
    token_file: TokenOption = None,
    name: NameOption = None,
    slots: SlotsOption = None,
    label: LabelOption = None,
    state_dir: StateOption = None,
    *,
    given: Given,
) -> None:
    """Let this machine work for a server on another one.

    This is its agent, in the foreground.

    Its tasks outlive it for a while; start it by your system's manager of services.

    \b
    pliant agent --join pool.example.org     the first time; `pliant machines token` there makes the token
    pliant agent                             from then on
    """
    if join is not None and not join.strip():
        raise InvalidInput.at("--join", "give the server's address, HOST or HOST:PORT")
    argv = [sys.executable, "-P", "-m", "pliant.entry.agent"]
    options: dict[str, object] = {"--join": join, "--token-file": token_file, "--name": name, "--slots": slots}
    options |= {"--label": label, "--state-dir": state_dir or _state_dir()}
    sys.stdout.flush()
    os.execv(argv[0], [*argv, *arguments_of(options), *arguments_given(given)])


def _state_dir() -> Path:
    """Return the folder of this machine's agent."""
    return machine_folder("agent" if os.geteuid() == 0 else f"agent-{platform.node() or 'machine'}")
