"""Every person gets an id of the operating system of their own, once and for ever."""

import pytest

from pliant.core.confinement import RunAs
from pliant.core.errors import Unavailable
from pliant.core.registry import Registry
from pliant.people.system_ids import BUILDERS, SystemIds
from pliant.sim.clock import VirtualClock

UIDS = range(60706, 60709)


def test_an_id_is_given_once_and_kept(registry: Registry, clock: VirtualClock) -> None:
    ids = SystemIds(registry, clock, UIDS)
    first = [ids.of(name) for name in ("ada", "bob", "ada", BUILDERS)]

    assert first == [RunAs(uid=60706), RunAs(uid=60707), RunAs(uid=60706), RunAs(uid=60708)]
    assert SystemIds(registry, clock, range(70000, 70009)).of("bob") == RunAs(uid=60707), "files carry it"


def test_when_all_are_given_the_next_person_is_refused_with_what_to_do(registry: Registry, clock: VirtualClock) -> None:
    ids = SystemIds(registry, clock, range(60706, 60707))
    ids.of("ada")

    with pytest.raises(Unavailable, match="--uids FIRST-LAST"):
        ids.of("bob")


def test_a_server_that_may_not_change_users_gives_none(registry: Registry, clock: VirtualClock) -> None:
    assert SystemIds(registry, clock, None).of("ada") is None
