"""Who may do what: roles, permissions, and the one table that joins them. Whose a thing is decides the rest."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from annotated_types import Len, MaxLen

from pliant.core.input import NO_NUL, Input
from pliant.core.job import JobId
from pliant.core.registry import MAX_NAME


class Role(StrEnum):
    """What a user is to this server; exactly one each."""

    ADMIN = "admin"
    """Everything."""
    OPERATOR = "operator"
    """Runs the pool: queues, resource groups, everybody's jobs; no users, no audit log."""
    USER = "user"
    """Works: jobs, data sets, models and environments of their own, and those shared with them."""
    VIEWER = "viewer"
    """Looks: at the pool and at what was shared with them; changes nothing but their own password and tokens."""


class Permission(StrEnum):
    """One kind of thing that can be done; also the scopes of a token."""

    SELF = "self"
    """Read and change one's own account: password, sessions, tokens."""
    POOL_READ = "pool:read"
    POOL_WRITE = "pool:write"
    """Queues and resource groups."""
    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    DATA_READ = "data:read"
    DATA_WRITE = "data:write"
    MODELS_READ = "models:read"
    MODELS_WRITE = "models:write"
    """Templates, models, trainings and environments."""
    ENDPOINTS_READ = "endpoints:read"
    ENDPOINTS_WRITE = "endpoints:write"
    INFER = "infer"
    """Ask endpoints that one may use."""
    USERS_WRITE = "users:write"
    """Other people's accounts."""
    METRICS_READ = "metrics:read"
    """Measures of everything, for monitoring."""
    AUDIT_READ = "audit:read"
    SERVER_WRITE = "server:write"
    """End the server, clean up."""
    BACKUP = "backup"
    """Read all that the server holds, its secrets too."""


_VIEWER: Final = frozenset(
    {
        Permission.SELF,
        Permission.POOL_READ,
        Permission.JOBS_READ,
        Permission.DATA_READ,
        Permission.MODELS_READ,
        Permission.ENDPOINTS_READ,
        Permission.INFER,
    }
)
_USER: Final = _VIEWER | {
    Permission.JOBS_WRITE,
    Permission.DATA_WRITE,
    Permission.MODELS_WRITE,
    Permission.ENDPOINTS_WRITE,
}
_OPERATOR: Final = _USER | {Permission.POOL_WRITE, Permission.METRICS_READ, Permission.SERVER_WRITE}

ALLOWED: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: _OPERATOR,
    Role.USER: _USER,
    Role.VIEWER: _VIEWER,
}

EVERYBODY: Final = "*"
"""In a list of those something is shared with: all who can log on."""

SharedWith = Annotated[tuple[Annotated[str, Input(Len(1, MAX_NAME), NO_NUL)], ...], Input(MaxLen(1000))]
"""Names of users, and `EVERYBODY`."""


def name_once(users: Iterable[str]) -> tuple[str, ...]:
    """Return these users in their order, each of them once."""
    return tuple(dict.fromkeys(users))


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who has shown who they are."""

    name: str
    role: Role
    scopes: frozenset[Permission] | None = None
    """What their token is limited to; None if it is not."""
    endpoints: frozenset[str] | None = None
    """The only things that exist for their token: the endpoints of these names; None if it is not limited so."""

    def may(self, permission: Permission) -> bool:
        """Tell whether role and scopes allow it."""
        return permission in ALLOWED[self.role] and (self.scopes is None or permission in self.scopes)

    @property
    def sees_all(self) -> bool:
        """Whether what belongs to others is theirs to see and to change."""
        return self.role in (Role.ADMIN, Role.OPERATOR)

    def sees(self, owner: str, shared_with: Collection[str] = ()) -> bool:
        """Tell whether something is theirs, shared with them, or with everybody."""
        return self.sees_all or owner == self.name or self.name in shared_with or EVERYBODY in shared_with

    def reaches(self, kind: str, name: str) -> bool:
        """Tell whether something exists for their token, whoever's it is."""
        return self.endpoints is None or (kind == "endpoint" and name in self.endpoints)

    def owns(self, owner: str) -> bool:
        """Tell whether they may change or remove something of this owner."""
        return self.sees_all or owner == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleJobs:
    """Which jobs somebody sees who does not see all: their own, and those shared with them."""

    owner: str
    shared: frozenset[JobId] = frozenset()

    def covers(self, job_id: JobId, owner: str) -> bool:
        """Tell whether a job is among them."""
        return owner == self.owner or job_id in self.shared
