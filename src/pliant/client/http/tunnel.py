"""The client's end of a tunnel: a WebSocket to the server that was just asked for it, known by the same certificate."""

import logging
from typing import Final
from urllib.parse import urlsplit

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from pliant.api.trust import websocket_url
from pliant.api.tunnel import TunnelView, outside_path
from pliant.client.http.connection import Connection
from pliant.core.errors import Unavailable
from pliant.core.tunnel import MAX_FRAME_BYTES

_OPEN_S: Final = 20.0
_LOG: Final = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
"""What the library has to say of a connection that fails; a terminal is for what runs there, and is told by us."""


def connect_tunnel(connection: Connection, made: TunnelView) -> ClientConnection:
    """Connect with a tunnel that the server has made.

    Raises:
        Unavailable: the server cannot be reached by WebSocket, or does not know the tunnel any more.
    """
    trust = connection.trust
    is_encrypted = urlsplit(connection.url).scheme == "https"
    try:
        opened = connect(
            websocket_url(connection.url) + outside_path(made.id),
            additional_headers={"Authorization": f"Bearer {made.ticket}"},
            max_size=MAX_FRAME_BYTES,
            open_timeout=_OPEN_S,
            close_timeout=2,
            proxy=None,
            compression=None,
            logger=_LOG,
            ssl=trust.context() if is_encrypted else None,
            server_hostname=trust.server_name if is_encrypted else None,
        )
    except InvalidStatus as error:
        raise Unavailable(
            f"the server at {connection.url} opened no tunnel (it answered {error.response.status_code}); "
            f"what stands between must pass on WebSockets"
        ) from error
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unavailable(f"the connection to the server at {connection.url} was lost ({error}); try again") from error
    return opened.__enter__()  # its `close` closes it
