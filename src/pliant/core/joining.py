"""How machines join the pool: the tokens with which they do so once, and what is remembered of those that have joined.

A machine joins with a token that somebody made for it, and gets a certificate, by which it is known from then on. The
text of a token, which is shown once, has three parts:

    pliant-join-4f1c9a02b7d3e658.<64 hex digits>.<64 hex digits>
                id               secret          pin

The secret proves to the server who joins. The pin is the SHA-256 of the certificate with which the server answers
agents: it proves the server to a machine that knows nothing of this pool yet. The secret has 256 random bits, so
nobody finds it by trying, and its plain SHA-256 is enough to be kept: a slow hash would add nothing.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Le

from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import FINITE, NUMBER, Input, Pattern
from pliant.core.job import NodeId
from pliant.core.plan import NodeView

MACHINE_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
MACHINE_NAME_WORDS: Final = "letters, digits, '.', '_' and '-', 63 at most, a letter or digit first"
_RESERVED: Final = frozenset({"local", "tokens"})
"""The server's own machine, and a word that stands in the REST API where names of machines do."""

MAX_TOKEN_USES: Final = 1000
MAX_JOIN_TOKEN_S: Final = 30 * 86400.0
DEFAULT_JOIN_TOKEN_S: Final = 3600.0
NUM_ID_BYTES: Final = 8
NUM_SECRET_BYTES: Final = 32
JOIN_PREFIX: Final = "pliant-join-"
_NUM_PIN_BYTES: Final = 32
_MAX_TEXT: Final = 1000
MAX_SLOTS: Final = 4096
MAX_DECLARED_LABELS: Final = 100
_LABEL: Final = re.compile(r"[A-Za-z0-9._/-]{1,60}=[A-Za-z0-9._/-]{0,60}")
_MAX_LINES: Final = 100
_MAX_LINE: Final = 500
_MAX_NUMBER: Final = 1_000_000

MachineName = Annotated[str, Input(Pattern(MACHINE_NAME, MACHINE_NAME_WORDS))]
TokenUses = Annotated[int, Input(Ge(1), Le(MAX_TOKEN_USES))]
TokenSeconds = Annotated[float, Input(Ge(1.0), Le(MAX_JOIN_TOKEN_S), FINITE, NUMBER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """What is kept of a token until it expires."""

    KIND: ClassVar[str] = "join-token"

    name: str
    """Its id, which anybody may know."""
    owner: str
    """Who made it."""
    secret_hash: str = field(repr=False)
    """SHA-256 of the secret, hex digits."""
    expires_at: float
    machine: str = ""
    """The only name with which a machine may join; empty: any."""
    max_uses: int = 1
    num_uses: int = 0

    def matches(self, secret: str) -> bool:
        """Tell in constant time whether this is its secret."""
        return hmac.compare_digest(self.secret_hash, hash_of_secret(secret))


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMachine:
    """A machine that has joined: who it is, and what its agent said last.

    A server that starts while the machine is away knows by it which slots the machine has.
    """

    KIND: ClassVar[str] = "joined-machine"

    name: str
    owner: str
    """Who made the token with which it joined."""
    fingerprint: str
    """SHA-256 of the public key in its certificate, hex digits. Of the key, since a machine renews its certificate
    with the same key: whichever of the two it shows then, this is the same, and nothing has to be written in step."""
    joined_at: float
    slots: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    num_gpus: int = 0
    num_cpus: int = 0
    walls: tuple[str, ...] = ()
    missing_walls: tuple[str, ...] = ()
    has_copies: bool = False

    @property
    def node(self) -> NodeView:
        """It as the scheduler sees a machine."""
        return NodeView(
            id=NodeId(self.name),
            slots=self.slots,
            labels=self.labels,
            num_gpus=self.num_gpus,
            num_cpus=self.num_cpus,
            walls=self.walls,
            missing_walls=self.missing_walls,
            has_copies=self.has_copies,
        )


def machine_name_fault(name: str) -> str:
    """Return why no machine may have this name; empty: one may."""
    if re.fullmatch(MACHINE_NAME, name) is None or name.endswith("\n"):
        return f"{name!r:.80} is no name of a machine: {MACHINE_NAME_WORDS}"
    if name.lower() in _RESERVED:
        return f"{name!r} is no name for a machine that joins: Pliant uses it itself; choose another one"
    return ""


def problems_of_machine(machine: JoinedMachine) -> tuple[Problem, ...]:
    """Return what nobody can remember of a machine: what its agent says is a stranger's word."""
    found = {
        "name": machine_name_fault(machine.name),
        "slots": _slots_fault(machine.slots),
        "labels": _labels_fault(machine.labels),
        "walls": _lines_fault((*machine.walls, *machine.missing_walls)),
        "num_gpus": _number_fault(machine.num_gpus),
        "num_cpus": _number_fault(machine.num_cpus),
    }
    return tuple(Problem(field=field, message=message) for field, message in found.items() if message)


def _slots_fault(slots: tuple[int, ...]) -> str:
    if len(slots) > MAX_SLOTS or any(not 0 <= slot < MAX_SLOTS for slot in slots) or len(set(slots)) < len(slots):
        return f"{len(slots)} slots are named; they are different numbers from 0 to {MAX_SLOTS - 1}"
    return ""


def _labels_fault(labels: Mapping[str, str]) -> str:
    if len(labels) > MAX_DECLARED_LABELS:
        return f"{len(labels)} labels are declared; {MAX_DECLARED_LABELS} are the most"
    wrong = next((label for label in labels.items() if _LABEL.fullmatch("=".join(label)) is None), None)
    return "" if wrong is None else f"{wrong!r:.80} is no label: letters, digits, '.', '_', '/' and '-', 60 at most"


def _lines_fault(lines: tuple[str, ...]) -> str:
    if len(lines) > _MAX_LINES or any(len(line) > _MAX_LINE or not line.isprintable() for line in lines):
        return f"it is too long, or holds what nobody can read; {_MAX_LINES} lines of {_MAX_LINE} characters at most"
    return ""


def _number_fault(number: int) -> str:
    return "" if 0 <= number < _MAX_NUMBER else f"{number!r:.40} is no number of devices"


def used_once_more(token: JoinToken) -> JoinToken:
    """Return a token after one more machine has joined with it."""
    return replace(token, num_uses=token.num_uses + 1)


def hash_of_secret(secret: str) -> str:
    """Return what is kept of a token's secret."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def join_token_text(token_id: str, secret: str, pin: str) -> str:
    """Return the text of a token, as it is shown once."""
    return f"{JOIN_PREFIX}{token_id}.{secret}.{pin}"


def join_command(address: str) -> str:
    """Return what to type on a machine that is to join; the token is asked for, since others can read arguments."""
    return f"pliant agent --join {address}"


_FORM: Final = re.compile(
    rf"{JOIN_PREFIX}([0-9a-f]{{{2 * NUM_ID_BYTES}}})\.([0-9a-f]{{{2 * NUM_SECRET_BYTES}}})"
    rf"\.([0-9a-f]{{{2 * _NUM_PIN_BYTES}}})"
)


def parse_join_token(text: str) -> tuple[str, str, str]:
    """Return id, secret and pin of a token; blanks and line breaks in it do not matter: narrow terminals make some.

    Raises:
        InvalidInput: it is none. The message holds nothing of what was given, which may be a secret all the same.
    """
    found = _FORM.fullmatch("".join(text.split())) if len(text) <= _MAX_TEXT else None
    if found is None:
        begins = "does" if text.lstrip().startswith(JOIN_PREFIX) else "does not"
        raise InvalidInput.at(
            "token",
            f"this is no join token: one begins with {JOIN_PREFIX!r}, which this {begins}, and has three parts with "
            f"dots between them; it has {len(text)} characters; copy all of what `pliant machines token` showed",
        )
    return found[1], found[2], found[3]
