"""People: the parts of this room, put together over a registry."""

from dataclasses import dataclass

from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.people.accounts import Accounts
from pliant.people.gate import Gate
from pliant.people.opaque import TokenHex
from pliant.people.passwords import DEFAULT_COST, Cost, Passwords
from pliant.people.sessions import Sessions
from pliant.people.tokens import Tokens
from pliant.people.verifier import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Who there is, and how they show it."""

    accounts: Accounts
    sessions: Sessions
    tokens: Tokens
    gate: Gate


def make_people(
    registry: Registry, clock: Clock, *, file_token: str, token_hex: TokenHex, cost: Cost = DEFAULT_COST
) -> People:
    """Put the room together.

    `file_token` stands for the administrator; `token_hex` is where randomness comes from (`secrets.token_hex`); `cost`
    is what a hash of a password takes.
    """
    passwords = Passwords(cost)
    sessions = Sessions(registry=registry, clock=clock, token_hex=token_hex)
    tokens = Tokens(registry=registry, clock=clock, token_hex=token_hex)
    accounts = Accounts(
        registry=registry, clock=clock, passwords=passwords, sessions=sessions, tokens=tokens, token_hex=token_hex
    )
    verifier = Verifier(passwords=passwords, clock=clock, key=bytes.fromhex(token_hex(32)))
    gate = Gate(accounts=accounts, sessions=sessions, tokens=tokens, verifier=verifier, file_token=file_token)
    return People(accounts=accounts, sessions=sessions, tokens=tokens, gate=gate)
