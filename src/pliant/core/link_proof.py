"""How a task and its server prove to each other, as a link opens, that they hold the job's token. It never travels.

While no server runs, a script of anybody's can listen at its port, and the tasks of others connect with it. So a task
sends no token but a proof, says nothing before it has the server's, and takes nothing in:

    task      Authorization: Pliant-Task NONCE PROOF     made with the word "task"
    server    X-Pliant-Proof: PROOF                      made with the word "open", or "refused" with HTTP 401

A refusal is proved for any task's id, whether there is such a task or not, so that no stranger can send tasks away.
A proof is HMAC-SHA256 with the token over the word, the task's id, the server's challenge and the task's nonce. Every
server writes a challenge of its own into the file that says where it listens, so what a stranger was sent in its place
opens no link of the next one. A nonce is new for every connection.
"""

import hmac
from dataclasses import dataclass
from typing import Final, Literal

Word = Literal["task", "open", "refused"]
"""What is proved: to be the task; to be its server and open the link, or refuse it."""

SCHEME: Final = "Pliant-Task"
"""Of the Authorization header."""
PROOF_HEADER: Final = "X-Pliant-Proof"
NUM_BYTES: Final = 32
"""Of a challenge and of a nonce: random, and written in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAnswer:
    """What a server says to who wants to open a link."""

    is_open: bool
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProof:
    """What both proofs of one connection are made of, but for the token."""

    task_id: str
    challenge: str
    nonce: str

    def of(self, word: Word, token: str) -> str:
        """Return the proof that a word is said by who holds the token, hexadecimal."""
        said = "\n".join((word, self.task_id, self.challenge, self.nonce))
        return hmac.new(token.encode(), said.encode("utf-8", "surrogateescape"), "sha256").hexdigest()

    def authorization(self, token: str) -> str:
        """Return the header that a task sends."""
        return f"{SCHEME} {self.nonce} {self.of('task', token)}"

    def proves(self, word: Word, token: str, proof: str) -> bool:
        """Tell whether this is the proof; takes the same time whatever is wrong."""
        return hmac.compare_digest(self.of(word, token).encode(), proof.encode("utf-8", "surrogateescape"))


def read_authorization(header: str) -> tuple[str, str]:
    """Return nonce and proof of such a header; empty ones if it holds none."""
    scheme, _, rest = header.partition(" ")
    nonce, _, proof = rest.partition(" ")
    return (nonce, proof) if scheme == SCHEME and len(nonce) == 2 * NUM_BYTES else ("", "")
