"""A process of a fixed job that waits for ever."""

import threading


def wait_here() -> None:
    threading.Event().wait()


wait_here()
