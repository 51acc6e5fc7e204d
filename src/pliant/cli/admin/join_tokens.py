"""The commands `machines token`, `tokens` and `revoke`: what lets another machine join the pool."""

from typing import Annotated, Final

import typer

from pliant.api.machines import JoinTokenPage, JoinTokenRequest, JoinTokenView, MadeJoinToken
from pliant.cli import formatting
from pliant.cli.options import JsonOption, leave_out_none, option
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show_list
from pliant.cli.session import open_client
from pliant.core.duration import seconds_of

_COLUMNS: Final = (
    TableColumn(title="TOKEN"),
    TableColumn(title="MACHINE", cut=True),
    TableColumn(title="USED", right=True),
    TableColumn(title="EXPIRES"),
    TableColumn(title="MADE BY", cut=True),
)


def make_token(
    context: typer.Context,
    machine: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only a machine of this name may join.", show_default=False)
    ] = None,
    valid_s: Annotated[
        str | None, option("How long it is good, such as 30m or 2d.  [default: (1h)]", "--valid", metavar="TIME")
    ] = None,
    max_uses: Annotated[
        int | None, typer.Option("--uses", help="So many machines may join.  [default: (1)]", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Let another machine join: make a token, shown this once.

    \b
    pliant machines token                      for one machine, within the hour
    pliant machines token gpu3                 for the machine gpu3 alone
    pliant machines token --uses 16 --valid 2d
    """
    seconds = None if valid_s is None else seconds_of(valid_s, field="--valid")
    given = leave_out_none({"machine": machine, "valid_s": seconds, "max_uses": max_uses})
    request = validate(JoinTokenRequest, given)
    with open_client(context) as client:
        made = client.machines.make_token(request)
    if as_json:
        print_json(made)
    else:
        _say(made)


def list_tokens(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the tokens that let machines join; never their text."""
    with open_client(context) as client:
        found = client.machines.tokens()
    nothing = "There are no join tokens; `pliant machines token` makes one."
    show_list(JoinTokenPage(tokens=found), _COLUMNS, map(_row, found), nothing, as_json=as_json)


def revoke_token(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, as listed.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Make a join token worthless; who has joined with it stays."""
    with open_client(context) as client:
        client.machines.revoke_token(token_id)
    print_outcome({"id": token_id, "revoked": True}, f"{token_id} lets nobody join any more.", as_json=as_json)


def _say(made: MadeJoinToken) -> None:
    info = made.info
    who = info.machine or formatting.count_of(info.max_uses, "machine")
    say(f"{who} can join until {formatting.date_time(info.expires_at)}. Type there:")
    typer.echo(f"\n    {made.command}\n")
    say("It asks for the token, which is shown this once:")
    typer.echo(f"\n{made.token}\n")  # whole: a line break in it would be copied


def _row(token: JoinTokenView) -> list[str]:
    return [
        token.id,
        token.machine or "any",
        f"{token.num_uses} of {token.max_uses}",
        formatting.date_time(token.expires_at),
        token.owner,
    ]
