"""The commands `users …`: accounts, for administrators."""

from typing import Annotated, Final

import typer

from pliant.api.people import UserPage, UserPatch, UserRequest
from pliant.cli import formatting
from pliant.cli.fields import Given, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.people.secret import ask_new
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show, table
from pliant.cli.session import is_local, open_client, server_of
from pliant.cli.settings import settings_of
from pliant.core.access import Role
from pliant.core.people import UserSettings

app = typer.Typer(help="Users: list, add, set, remove.", invoke_without_command=True, rich_markup_mode=None)

NameArgument = Annotated[str, name_argument("user", "The user's name.")]
AskOption = Annotated[bool, typer.Option("--password", "-p", help="Ask for the password, or take a line on stdin.")]
_USER: Final = {
    "role": ask("What they may do.", type=Role),
    "active": ask("Whether they can log in.", "--enable/--disable", type=bool),
}


@app.callback()
def users(context: typer.Context, as_json: JsonOption = False) -> None:
    """Users: list, add, set, remove.

    Alone it lists them. Roles: admin may all; operator runs the pool and sees
    all jobs; user works with what is theirs or shared; viewer only looks.
    """
    if context.invoked_subcommand is None:
        list_users(context, as_json)


@app.command("list")
def list_users(context: typer.Context, as_json: JsonOption = False) -> None:
    """List users."""
    with open_client(context) as client:
        found = client.people.users()
    if as_json:
        print_json(UserPage(users=found, next=None))
        return
    columns = (
        TableColumn(title="NAME"),
        TableColumn(title="ROLE"),
        TableColumn(title="STATE"),
        TableColumn(title="SINCE"),
    )
    states = {True: "active", False: "disabled"}
    show(table(columns, ([u.name, u.role.value, states[u.active], formatting.date_time(u.created_at)] for u in found)))


@app.command("add")
@takes(options_of(UserSettings, _USER, but=("name", "active")))
def add_user(
    context: typer.Context, name: NameArgument, given: Given, ask: AskOption = False, as_json: JsonOption = False
) -> None:
    """Make a user.

    Without -p a password is made up and shown this once.

    \b
    pliant users add ann
    pliant users add eve --role viewer -p
    """
    password = {"password": ask_new(f"Password of {name}")} if ask else {}
    request = validate(UserRequest, {"name": name, "role": Role.USER, **given, **password})
    with open_client(context) as client:
        made = client.people.add_user(request)
    url = server_of(settings_of(context)).public_url
    if as_json:
        print_json(made)
        return
    say(f"{made.user.name} ({made.user.role.value}) can log in: `pliant login --url {url} --user {made.user.name}`")
    if is_local(url):
        say("That is on this machine; others reach a server that was started with --host and --tls.")
    if made.password is not None:
        say(f"The password, shown this once: {made.password}")


@app.command("set")
@takes(options_of(UserSettings, _USER, but=("name",)))
def set_user(
    context: typer.Context, name: NameArgument, given: Given, ask: AskOption = False, as_json: JsonOption = False
) -> None:
    """Change a user: role, password, enabled or disabled.

    Whoever is disabled, or gets another password, is logged out everywhere.

    \b
    pliant users set ann --role operator
    pliant users set ann --disable
    """
    password = {"password": ask_new(f"New password of {name}")} if ask else {}
    patch = validate(UserPatch, {**given, **password})
    with open_client(context) as client:
        changed = client.people.change_user(name, patch)
    said = f"{changed.name}: {changed.role.value}, {'active' if changed.active else 'disabled'}"
    print_outcome(changed, said, as_json=as_json)


@app.command("remove")
def remove_user(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a user, with their logins and tokens; what they own stays."""
    with open_client(context) as client:
        client.people.remove_user(name)
    print_outcome({"name": name, "removed": True}, f"{name} is removed; what they own stays.", as_json=as_json)
