"""The command `console`: the web console in a browser that is logged on as who asks."""

from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from pliant.api.sessions import inside, link_url
from pliant.cli.browser import has_screen, open_browser
from pliant.cli.options import JsonOption
from pliant.cli.screen import print_json, say
from pliant.cli.session import credentials, is_local, open_client
from pliant.client.http.session import refuse_clear_text
from pliant.core.errors import InvalidInput

_PAGE: Final = "console.html"

ToOption = Annotated[
    str | None, typer.Option(metavar="PATH", help="The page to open, such as /jobs/job-7.", show_default=False)
]


def console(
    context: typer.Context,
    to: ToOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Open the web console in a browser, logged on.

    The link that logs the browser on as you works once, within a minute. With
    --no-browser it is printed, for a browser of your own: whoever opens it is
    you to the server.

    \b
    pliant console
    pliant console --to /jobs/job-7
    pliant console --no-browser
    """
    if to is not None:
        _check_page(to)
    with open_client(context) as client:
        refuse_clear_text(client.url)
        link = client.people.make_logon_link()
        url = link_url(client.url, link, to)
    address = url.partition("#")[0]
    opened = browser and has_screen() and open_browser(url, credentials().folder / _PAGE, "Pliant")
    if as_json:
        shown = address if opened else url
        print_json({"url": shown, "opened": opened, "expires_at": link.expires_at})
    elif opened:
        say(f"The console opens in your browser, at {address}.")
    else:
        print(url, flush=True)  # in one line, however narrow the terminal is
        if browser:
            _say_how(url)


def _check_page(to: str) -> None:
    try:
        inside(to)
    except InvalidInput as error:
        raise InvalidInput.at("--to", error.problems[0].message) from error


def _say_how(url: str) -> None:
    """Say what to do with the address where there is no browser."""
    say("There is no browser here: open this address in one within a minute; it works once.", stderr=True)
    port = urlsplit(url).port
    if is_local(url) and port is not None:
        say(
            f"From another machine lead its port there first: `ssh -L {port}:127.0.0.1:{port} THIS_MACHINE`",
            stderr=True,
        )
