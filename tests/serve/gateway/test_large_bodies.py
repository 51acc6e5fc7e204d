"""Large bodies between a gateway and kernels that hand over memory for them; among those, kernels that lie about it."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread

import pytest
from tests.serve.gateway.played import METADATA, FakeKernel, Played, endpoint, in_loop, played, version

from bench.bodies import echo
from pliant.serve.gateway import kernel_link
from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind, encode_frame
from pliant.serve.protocol.shared_bodies import SharedBodies, make_shared_bodies

HALF = 8 << 20
LARGE = 3 << 20
TASK = "job-9.0"


class SharingKernel:
    """A kernel with memory for large bodies, frame by frame."""

    def __init__(self, kernel: FakeKernel, shared: SharedBodies) -> None:
        self.kernel = kernel
        self.shared = shared

    async def request(self) -> tuple[KernelFrame, bytes]:
        """Return a request with its body, which is not said to be taken."""
        frame = await self.kernel.request()
        if "at" not in frame.header:  # there was no room for it
            return frame, bytes(frame.body)
        assert frame.body == b""
        return frame, self.shared.take(frame.header["at"], frame.header["bytes"])

    def take(self, request: KernelFrame) -> None:
        if "at" in request.header:
            self.kernel.send(KernelFrameKind.COPIED, num=1)

    def answer(self, request: KernelFrame, body: bytes) -> None:
        self.send(KernelFrameKind.RESULT, body, id=request.header["id"])

    def send(self, kind: KernelFrameKind, body: bytes, **header: object) -> None:
        at = self.shared.put(body)
        if at is None:
            self.kernel.send(kind, body, **header, status=200)
        else:
            self.kernel.send(kind, **header, status=200, at=at, bytes=len(body))


async def sharing(world: Played, task: str = TASK) -> SharingKernel:
    """Return one that is ready."""
    channel = socket.socket(socket.AF_UNIX)
    await asyncio.to_thread(channel.connect, world.path)
    shared, file = make_shared_bodies(HALF)
    hello = encode_frame(KernelFrameKind.HELLO, {"task": task, "token": "token of job-9"})
    socket.send_fds(channel, [hello], [file])
    os.close(file)
    channel.setblocking(False)
    kernel = FakeKernel(*await asyncio.open_unix_connection(sock=channel))
    world.kernels.append(kernel)
    assert (await kernel.take(KernelFrameKind.WELCOME)).header["shared"] is True
    kernel.send(KernelFrameKind.READY, metadata=METADATA)
    await world.until(lambda: task in world.gateway.ready())
    return SharingKernel(kernel, shared)


@asynccontextmanager
async def running(path: str, *, by_memory: bool) -> AsyncIterator[None]:
    """A kernel with the real end of the connection, in a thread: it answers with what it is asked until it is cut."""
    hello = {"task": TASK, "token": "token of job-9"}
    thread = Thread(target=echo, args=(Path(path), hello), kwargs={"by_memory": by_memory}, name="kernel")
    thread.start()
    try:
        yield
    finally:
        await asyncio.to_thread(thread.join, 30)


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("by_memory", [True, False])
def test_large_and_small_bodies_come_back_as_they_were(by_memory: bool) -> None:
    @in_loop
    async def exchange() -> None:
        served = endpoint(version(), batch_size=8, pipe_size=2)
        async with played(served) as world, running(world.path, by_memory=by_memory):
            await world.until(lambda: world.gateway.ready())
            bodies = [os.urandom(num) for num in (1, LARGE, 600_000, 9, 20 << 20, LARGE, 130 << 20, 4)]
            world.apply(endpoint(version(), batch_size=8, pipe_size=2, max_body_bytes=200 << 20))
            posted = [world.post(body) for body in bodies]
            assert [(await one).content == body for one, body in zip(posted, bodies, strict=True)] == [True] * 8
            world.apply()  # cuts the kernel off

    before = open_files()
    exchange()
    assert open_files() == before


@in_loop
async def test_a_large_body_does_not_go_through_the_socket() -> None:
    async with played(endpoint(version())) as world:
        kernel = await sharing(world)
        posted = world.post(b"q" * LARGE)
        request, body = await kernel.request()
        assert (len(request.body), body) == (0, b"q" * LARGE)
        kernel.take(request)
        kernel.answer(request, b"a" * LARGE)
        assert (await kernel.kernel.take(KernelFrameKind.COPIED)).header == {"num": 1}

        assert (await posted).content == b"a" * LARGE


@in_loop
async def test_what_lies_in_the_memory_of_a_kernel_that_dies_is_asked_of_another() -> None:
    async with played(endpoint(version())) as world:
        first = await sharing(world)
        posted = world.post(b"q" * LARGE)
        await first.request()
        first.kernel.close()
        second = await sharing(world, "job-9.1")
        request, body = await second.request()
        second.answer(request, body)

        assert (await posted).content == b"q" * LARGE


@in_loop
async def test_a_kernel_that_never_says_what_it_has_taken_is_given_no_more_and_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_link, "MAX_UNREAD_BYTES", 2 * LARGE)
    async with played(endpoint(version(), batch_size=16, pipe_size=1)) as world:
        deaf = await sharing(world)
        posts = [world.post(b"q" * LARGE) for _ in range(8)]
        await world.until(lambda: sum(world.load()) == 8)
        queued, held = world.load()
        assert 0 < held < 8
        held_by_deaf = [(await deaf.kernel.request()) for _ in range(held)]

        other = await sharing(world, "job-9.1")
        for _ in range(queued):
            request, body = await other.request()
            other.take(request)
            other.answer(request, body)
        await world.until(lambda: sum(post.done() for post in posts) == queued)
        for request in held_by_deaf:
            deaf.take(request)
            deaf.answer(request, b"late")

        assert sorted({(await post).content for post in posts}) == [b"late", b"q" * LARGE]


@in_loop
async def test_what_a_kernel_changes_after_it_has_answered_changes_nothing() -> None:
    async with played(endpoint(version())) as world:
        kernel = await sharing(world)
        posted = world.post(b"q")
        request = await kernel.kernel.request()
        kernel.answer(request, b"a" * LARGE)
        await kernel.kernel.take(KernelFrameKind.COPIED)
        kernel.shared._memory[HALF:] = b"x" * HALF

        assert (await posted).content == b"a" * LARGE


@pytest.mark.parametrize(
    "lie",
    [
        {"at": HALF - 1, "bytes": 2},
        {"at": -1, "bytes": 2},
        {"at": "0", "bytes": 2},
        {"at": 0},
        {"at": 0, "bytes": 1 << 60},
    ],
)
@in_loop
async def test_an_answer_that_lies_nowhere_ends_the_kernel_and_not_the_request(lie: dict[str, object]) -> None:
    async with played(endpoint(version())) as world:
        liar = await sharing(world)
        posted = world.post(b"q")
        request = await liar.kernel.request()
        liar.kernel.send(KernelFrameKind.RESULT, id=request.header["id"], status=200, **lie)
        assert await liar.kernel.next() is None

        honest = await sharing(world, "job-9.1")
        honest.kernel.answer(await honest.kernel.request(), b"true")
        assert (await posted).content == b"true"


@pytest.mark.parametrize("num", [0, 1, -1, 1 << 70, None, "1"])
@in_loop
async def test_a_kernel_that_has_taken_what_was_never_there_is_cut_off(num: object) -> None:
    async with played(endpoint(version())) as world:
        liar = await sharing(world)
        liar.kernel.send(KernelFrameKind.COPIED, num=num)
        assert await liar.kernel.next() is None


@in_loop
async def test_a_kernel_without_memory_that_speaks_of_it_is_cut_off() -> None:
    async with played(endpoint(version())) as world:
        liar = await world.kernel()
        liar.send(KernelFrameKind.RESULT, id=1, at=0, bytes=5)
        assert await liar.next() is None


@in_loop
async def test_large_answers_that_nobody_has_asked_for_are_not_even_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[object]()
    take = SharedBodies.take

    def watch(shared: SharedBodies, at: object, num_bytes: object) -> bytes:
        sizes.append(num_bytes)
        return take(shared, at, num_bytes)

    async with played(endpoint(version())) as world:
        kernel = await sharing(world)
        monkeypatch.setattr(SharedBodies, "take", watch)
        for _ in range(kernel_link.MAX_UNASKED + 1):
            kernel.kernel.send(KernelFrameKind.RESULT, id=77, at=0, bytes=HALF)
        while (frame := await kernel.kernel.next()) is not None:
            assert frame.kind is KernelFrameKind.COPIED
    assert set(sizes) == {0}


@pytest.mark.parametrize("file", ["/dev/zero", "/etc/hostname", "two"])
@in_loop
async def test_a_stranger_s_files_are_closed_and_it_has_to_do_without(file: str) -> None:
    async with played(endpoint(version())) as world:
        before = open_files()
        channel = socket.socket(socket.AF_UNIX)
        await asyncio.to_thread(channel.connect, world.path)
        files = [os.open("/dev/zero" if file == "two" else file, os.O_RDONLY) for _ in range(2 if file == "two" else 1)]
        hello = encode_frame(KernelFrameKind.HELLO, {"task": TASK, "token": "token of job-9"})
        socket.send_fds(channel, [hello], files)
        for one in files:
            os.close(one)
        channel.setblocking(False)
        kernel = FakeKernel(*await asyncio.open_unix_connection(sock=channel))
        assert (await kernel.take(KernelFrameKind.WELCOME)).header["shared"] is False
        kernel.close()
        await world.until(lambda: open_files() == before)


@in_loop
async def test_a_connection_that_says_nothing_is_closed_and_one_that_closes_is_forgotten() -> None:
    async with played(endpoint(version())) as world:
        before = open_files()
        silent, gone = await world.connect(), await world.connect()
        gone.close()
        await world.until(lambda: len(world.gateway._kernels._silent) == 1)
        world.advance(30)
        assert await silent.next() is None
        silent.close()
        await world.until(lambda: open_files() == before)
