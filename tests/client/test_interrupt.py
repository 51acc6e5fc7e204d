"""Ctrl-C comes at any moment; what was asked for is never half done without a word."""

import signal
import threading
from typing import Any

import pytest
from pydantic_core import core_schema

from pliant.client.http.lazy_adapter import LazyAdapter


class Slow:
    """A type in the middle of whose schema Ctrl-C comes."""

    num_whole = 0

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        signal.raise_signal(signal.SIGINT)
        cls.num_whole += 1
        return core_schema.any_schema()


def test_ctrl_c_while_an_adapter_is_made_comes_after_it() -> None:
    before = Slow.num_whole

    with pytest.raises(KeyboardInterrupt):
        LazyAdapter(Slow).validate_json("1")

    assert Slow.num_whole == before + 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_adapter_can_be_made_in_any_thread() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(LazyAdapter(int).validate_json("7")))
    thread.start()
    thread.join(10)

    assert found == [7]
