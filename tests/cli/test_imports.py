"""Imports leave the collection of garbage as they have found it."""

import gc
from contextlib import suppress

import pytest

from pliant.cli.imports import without_garbage_collection


@pytest.mark.parametrize("was_enabled", [True, False])
def test_garbage_is_looked_for_after_the_imports_if_it_was_before_also_when_one_fails(was_enabled: bool) -> None:
    usual = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with suppress(ImportError), without_garbage_collection():
            within = gc.isenabled()
            raise ImportError("planted")
        after = gc.isenabled()
    finally:
        (gc.enable if usual else gc.disable)()
    assert (within, after) == (False, was_enabled)
