"""Real receivers on loopback: of webhooks, over HTTP or HTTPS, and of e-mail, over SMTP as RFC 5321 has it."""

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO


@dataclass
class Got:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Hook:
    """A receiver of webhooks: it answers with the statuses one after the other, and with the last one from then on."""

    port: int
    got: list[Got]
    answers: list[int]
    location: str = ""
    silent: threading.Event = field(default_factory=threading.Event)
    """While it is set requests are taken, and not answered."""
    released: threading.Event = field(default_factory=threading.Event)

    def has(self, number: int) -> Callable[[], bool]:
        """Return what tells whether so many have come."""
        return lambda: len(self.got) == number

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/SECRET?token=SECRET"


@contextmanager
def receiving(*answers: int, context: ssl.SSLContext | None = None) -> Iterator[Hook]:
    """Listen for webhooks."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.got.append(Got(path=self.path, headers=dict(self.headers), body=body))
            if hook.silent.is_set():
                hook.released.wait(60)
                return
            self.send_response(hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0])
            if hook.location:
                self.send_header("Location", hook.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: some clients do not trust us, and some go away."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        hook = Hook(port=server.server_address[1], got=[], answers=list(answers or (200,)))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield hook
        finally:
            hook.released.set()
            server.shutdown()
            thread.join(10)


@dataclass
class Letter:
    """An e-mail as it came."""

    sender: str
    recipients: list[str]
    text: str
    was_encrypted: bool
    user: str = ""


@dataclass
class MailServer:
    """A mail server that keeps what it gets."""

    context: ssl.SSLContext | None = None
    """With it STARTTLS is offered, and a log-in after it."""
    password: str = ""
    reply_to_rcpt: str = "250 ok"
    letters: list[Letter] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with ExitStack() as stack, suppress(OSError):
                stack.enter_context(sock).settimeout(30)
                self._serve(sock, stack)

    def _serve(self, sock: socket.socket, stack: ExitStack) -> None:
        is_encrypted, user, sender = False, "", ""
        recipients: list[str] = []
        stream: BinaryIO = stack.enter_context(sock.makefile("rb"))

        def say(*lines: str) -> None:
            sock.sendall("".join(f"{line}\r\n" for line in lines).encode())

        say("220 mail.test ready")
        while line := stream.readline(2000).decode("ascii"):
            verb, _, rest = line.strip().partition(" ")
            match verb.upper():
                case "EHLO":
                    offers = ["STARTTLS"] if self.context is not None and not is_encrypted else []
                    offers += ["AUTH PLAIN"] if self.password and is_encrypted else []
                    lines = ["mail.test", *offers, "SIZE 1000000"]
                    say(*(f"250-{one}" for one in lines[:-1]), f"250 {lines[-1]}")
                case "STARTTLS":
                    say("220 go on")
                    assert self.context is not None
                    sock = stack.enter_context(self.context.wrap_socket(sock, server_side=True))
                    stream, is_encrypted = stack.enter_context(sock.makefile("rb")), True
                case "AUTH":
                    _, name, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                    user = name if password == self.password else ""
                    say("235 welcome" if user else "535 no")
                case "MAIL":
                    sender, recipients = rest.partition(":")[2].split()[0].strip("<>"), []
                    say("250 ok")
                case "RCPT":
                    recipients.append(rest.partition(":")[2].split()[0].strip("<>"))
                    say(self.reply_to_rcpt)
                case "DATA":
                    say("354 end with a dot")
                    lines_ = []
                    while (text := stream.readline(2000)) != b".\r\n":
                        lines_.append(text.removeprefix(b"."))
                    letter = Letter(sender, recipients, b"".join(lines_).decode(), is_encrypted, user)
                    self.letters.append(letter)
                    say("250 kept")
                case "RSET" | "NOOP":
                    say("250 ok")
                case "QUIT":
                    say("221 bye")
                    return
                case _:
                    say("502 unknown")


@contextmanager
def mailbox(
    *, context: ssl.SSLContext | None = None, password: str = "", reply_to_rcpt: str = "250 ok"
) -> Iterator[MailServer]:
    """Run a mail server."""
    server = MailServer(context=context, password=password, reply_to_rcpt=reply_to_rcpt)
    try:
        yield server
    finally:
        server.close()
