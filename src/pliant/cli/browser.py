"""Opens an address that holds a secret in this machine's browser."""

import os
import sys
import webbrowser
from html import escape
from pathlib import Path

from pliant.files.folder import write_whole


def has_screen() -> bool:
    """Tell whether a browser can be seen here."""
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def open_browser(url: str, page: Path, title: str) -> bool:
    """Open an address by a page that leads there: what a program is started with, everybody on this machine sees.

    Args:
        url: the address.
        page: is written, for nobody else to read.
        title: what stands on it.

    Returns:
        Whether it could be written, and a browser was found.
    """
    link = escape(url)
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}"><a href="{link}">{escape(title)}</a>\n'
    try:
        write_whole(page, text.encode(), durable=False)
    except OSError:
        return False
    return webbrowser.open(page.as_uri())
