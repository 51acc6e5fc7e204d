"""A name that nothing has is answered with the near one that the caller may see, and with no other."""

import pytest

from pliant.catalog.sharing import require_visible
from pliant.core.access import Principal, Role
from pliant.core.dataset import Dataset, Source
from pliant.core.errors import NotFound
from pliant.sim.registry import MemoryRegistry


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("mnits", "there is no data set 'mnits'; is 'mnist' meant?"),
        ("secert", "there is no data set 'secert'; list them to see which you may use"),
        ("secret", "there is no data set 'secret'; list them to see which you may use"),
        ("faces", "there is no data set 'faces'; list them to see which you may use"),
    ],
)
def test_the_near_name_that_is_offered_is_one_that_they_see(asked: str, said: str) -> None:
    registry = MemoryRegistry()
    registry.add(_dataset("mnist", owner="ann", shared_with=("*",)), at=1.0)
    registry.add(_dataset("secret", owner="ann"), at=1.0)

    with pytest.raises(NotFound) as refused:
        require_visible(registry, Dataset, Principal(name="bob", role=Role.USER), asked)

    assert str(refused.value) == said


def _dataset(name: str, *, owner: str, shared_with: tuple[str, ...] = ()) -> Dataset:
    return Dataset(name=name, kind="csv", owner=owner, shared_with=shared_with, source=Source(path="/data"))
