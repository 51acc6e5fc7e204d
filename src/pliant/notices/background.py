"""Work that may hang (names, mail servers) in threads that keep nobody waiting, not even the server's end."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Lanes:
    """So many pieces of work at a time. One that hangs keeps its lane, also if nobody waits for it any more."""

    def __init__(self, num_lanes: int) -> None:
        self._free = asyncio.Semaphore(num_lanes)

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done in a thread that does not outlive the process."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._free.release()
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, fault = None, None
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it is awaited
                fault = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(finish, result, fault)

        threading.Thread(target=run, name="pliant-notices-work", daemon=True).start()
        return await done
