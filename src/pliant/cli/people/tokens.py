"""The commands `tokens …`: personal tokens, for programs that act for somebody."""

import time
from typing import Annotated, Final

import typer

from pliant.api.people import TokenPage, TokenRequest, TokenView
from pliant.cli import formatting
from pliant.cli.completion import complete
from pliant.cli.fields import Given, ask, options_of, takes
from pliant.cli.options import JsonOption
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show_list
from pliant.cli.session import open_client
from pliant.core.access import Permission
from pliant.core.people import TokenSettings

app = typer.Typer(help="Personal tokens: list, add, revoke.", invoke_without_command=True, rich_markup_mode=None)

OwnerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Somebody else's, for administrators.", autocompletion=complete("user"), show_default=False
    ),
]

_DAY_S: Final = 86400.0
_TOKEN: Final = {
    "scopes": ask("All it may do; repeatable.", "--scope", type=list[Permission]),
    "endpoints": ask(
        "With --scope infer: ask this endpoint, and do nothing else; repeatable.",
        "--endpoint",
        metavar="NAME",
        type=list[str],
    ),
    "max_rate": ask("Requests to endpoints per second, at most."),
    "max_concurrent": ask("Requests to endpoints at once, at most."),
    "expires_at": ask("How long it works.  [default: (90)]", "--days", read=lambda days: time.time() + days * _DAY_S),
}
_COLUMNS: Final = (
    TableColumn(title="TOKEN"),
    TableColumn(title="LABEL", cut=True),
    TableColumn(title="SCOPES", wrap=True),
    TableColumn(title="ENDPOINTS", wrap=True, optional=True),
    TableColumn(title="LIMITS", optional=True),
    TableColumn(title="EXPIRES"),
    TableColumn(title="LAST USED", optional=True),
)


@app.callback()
def tokens(context: typer.Context, as_json: JsonOption = False) -> None:
    """Personal tokens: list, add, revoke.

    Alone it lists them. A token stands for you, or for less if it has scopes;
    give it to a program as PLIANT_TOKEN.
    """
    if context.invoked_subcommand is None:
        list_tokens(context, None, as_json)


@app.command("list")
def list_tokens(context: typer.Context, owner: OwnerOption = None, as_json: JsonOption = False) -> None:
    """List tokens, newest first; never their text."""
    with open_client(context) as client:
        found = client.people.tokens(owner)
    nothing = "There are no tokens; `pliant tokens add LABEL` makes one."
    show_list(TokenPage(tokens=found), _COLUMNS, map(_row, found), nothing, as_json=as_json)


@app.command("add")
@takes(options_of(TokenSettings, _TOKEN, but=("label",)))
def add_token(
    context: typer.Context,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What it is for.", show_default=False)],
    given: Given,
    as_json: JsonOption = False,
) -> None:
    """Make a token; it is shown this once.

    \b
    pliant tokens add "nightly run"
    pliant tokens add dashboard --scope jobs:read --scope pool:read --days 30
    pliant tokens add shop --scope infer --endpoint digits --max-rate 50
    """
    request = validate(TokenRequest, {"label": label, **given})
    with open_client(context) as client:
        made = client.people.make_token(request)
    if as_json:
        print_json(made)
        return
    say(f"{made.info.id} ({made.info.label}) works until {formatting.date_time(made.info.expires_at)}.")
    say(f"The token, shown this once: {made.token}")


@app.command("revoke")
def revoke_token(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, as listed.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Make a token open nothing any more, at once."""
    with open_client(context) as client:
        client.people.revoke_token(token_id)
    print_outcome({"id": token_id, "revoked": True}, f"{token_id} opens nothing any more.", as_json=as_json)


def _row(token: TokenView) -> list[str]:
    return [
        token.id,
        token.label,
        "all" if token.scopes is None else ", ".join(scope.value for scope in token.scopes),
        formatting.NOTHING if token.endpoints is None else ", ".join(token.endpoints),
        _limits(token),
        formatting.date_time(token.expires_at),
        formatting.NOTHING if token.last_used_at is None else formatting.date_time(token.last_used_at),
    ]


def _limits(token: TokenView) -> str:
    """Return how much it may ask endpoints."""
    limits = [
        None if token.max_rate is None else f"{token.max_rate:g}/s",
        None if token.max_concurrent is None else f"{token.max_concurrent} at once",
    ]
    return ", ".join(limit for limit in limits if limit) or formatting.NOTHING
