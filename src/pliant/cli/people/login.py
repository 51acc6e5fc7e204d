"""Commands about oneself: `login`, `logout`, `whoami`, `passwd`."""

from dataclasses import replace
from typing import Annotated

import typer

from pliant.cli import formatting
from pliant.cli.options import JsonOption
from pliant.cli.people.secret import ask, ask_new
from pliant.cli.screen import print_json, say
from pliant.cli.session import Server, credentials, open_client, server_of
from pliant.cli.settings import settings_of
from pliant.client import Client
from pliant.client.http.credentials import Login
from pliant.client.http.session import refuse_clear_text
from pliant.core.errors import NotFound, Unauthorized

UrlOption = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Address of the server; as before the command.")
]


def login(
    context: typer.Context,
    url: UrlOption = None,
    user: Annotated[str | None, typer.Option("--user", "-u", metavar="NAME", help="Who you are there.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Log in at a server; the password is asked for.

    Commands use the login for eight hours. It is kept in ~/.config/pliant,
    where nobody else can read it. From a pipe the password is a line on stdin.

    \b
    pliant login --user ann
    pliant login --url https://pool.example.org:7311 --user ann
    """
    server = _server(context, url)
    refuse_clear_text(server.url)
    if user is None:
        user = typer.prompt("User", err=True)
    password = ask("Password")
    with Client(server.url, None, trust=server.trust) as client:
        begun = client.people.log_on(user, password)
    assert begun.token is not None, "only who asks for a cookie has it there"
    kept = Login(url=server.url, name=begun.name, token=begun.token, expires_at=begun.expires_at, trust=server.trust)
    credentials().keep(kept)
    if as_json:
        print_json({"url": server.url, "name": begun.name, "role": begun.role.value, "expires_at": begun.expires_at})
    else:
        say(
            f"{begun.name} ({begun.role.value}) is logged in at {server.url} "
            f"until {formatting.date_time(begun.expires_at)}."
        )


def logout(context: typer.Context, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """End the login at a server, there and here."""
    server = _server(context, url)
    if server.login is None:
        raise NotFound(f"nobody is logged in at {server.url}")
    try:
        with Client(server.url, server.login.token, trust=server.trust) as client:
            client.people.log_off()
    except Unauthorized:
        say("The session had ended already.", stderr=True)
    finally:
        credentials().forget(server.url)
    if as_json:
        print_json({"url": server.url, "name": server.login.name, "logged_in": False})
    else:
        say(f"{server.login.name} is logged out at {server.url}.")


def whoami(context: typer.Context, as_json: JsonOption = False) -> None:
    """Tell who you are to the server, and what you may do."""
    with open_client(context) as client:
        me, url = client.people.me(), client.url
    if as_json:
        print_json(me)
        return
    until = "" if me.expires_at is None else f" until {formatting.date_time(me.expires_at)}"
    how = {"file": "the token of the state folder", "password": "a password"}.get(me.by, f"a {me.by}")
    say(f"{me.name} ({me.role.value}) at {url}, by {how}{until}")
    say(f"may {', '.join(permission.value for permission in me.permissions)}")


def passwd(context: typer.Context) -> None:
    """Change your own password; your other logins end.

    From a pipe the old and the new one are a line each.
    """
    with open_client(context) as client:
        client.people.set_password(ask("Old password"), ask_new("New password"))
    say("The password is changed; other logins of yours have ended.")


def _server(context: typer.Context, url: str | None) -> Server:
    settings = settings_of(context)
    return server_of(replace(settings, url=url or settings.url, token=None))
