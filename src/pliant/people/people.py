"""People: the parts of this room, put together over a registry."""

from dataclasses import dataclass

from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.people.accounts import Accounts
from pliant.people.authenticator import Authenticator
from pliant.people.changes import RightsChanges
from pliant.people.credentials import CredentialStore, TokenHex
from pliant.people.logon_links import LogonLinks
from pliant.people.password_checker import PasswordChecker
from pliant.people.passwords import DEFAULT_COST, Cost, Passwords
from pliant.people.views import ViewStore


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The users of a server, their credentials, and how they are authenticated."""

    accounts: Accounts
    credentials: CredentialStore
    authenticator: Authenticator
    views: ViewStore
    """What people have saved of lists."""
    links: LogonLinks
    """One-time links that log a browser on."""
    changes: RightsChanges
    """Who subscribes hears whenever what somebody's tokens open may have changed."""


def make_people(
    registry: Registry,
    clock: Clock,
    *,
    file_token: str,
    token_hex: TokenHex,
    cost: Cost = DEFAULT_COST,
    alone: str = "",
) -> People:
    """Put the room together.

    `file_token` stands for the administrator; `token_hex` is where randomness comes from (`secrets.token_hex`); `cost`
    is what a hash of a password takes; `alone` says why there may be one user only.
    """
    passwords = Passwords(cost)
    changes = RightsChanges()
    credentials = CredentialStore(registry=registry, clock=clock, token_hex=token_hex, changes=changes)
    accounts = Accounts(
        registry=registry,
        clock=clock,
        passwords=passwords,
        credentials=credentials,
        token_hex=token_hex,
        changes=changes,
        alone=alone,
    )
    checker = PasswordChecker(passwords=passwords, clock=clock, key=bytes.fromhex(token_hex(32)))
    authenticator = Authenticator(accounts=accounts, credentials=credentials, passwords=checker, file_token=file_token)
    links = LogonLinks(accounts=accounts, credentials=credentials, clock=clock, token_hex=token_hex)
    return People(
        accounts=accounts,
        credentials=credentials,
        authenticator=authenticator,
        views=ViewStore(registry=registry, clock=clock),
        links=links,
        changes=changes,
    )
