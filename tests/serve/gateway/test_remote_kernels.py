"""Kernels of other machines at a gateway: TLS over real sockets, strangers, and a network that is cut."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.serve.gateway.played import PATIENCE_S, FakeKernel, Played, endpoint, in_loop, played, version
from tests.serve.other_machine import cut, make_certificate, mend, shown_by

from pliant.entry.gateway.sockets import bind_kernels
from pliant.serve.gateway import remote_kernels
from pliant.serve.gateway.kernel_link import MAX_UNREAD_BYTES
from pliant.serve.gateway.kernel_listener import HELLO_WITHIN_S
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.protocol import tcp_link
from pliant.serve.protocol.frames import MAX_HELLO_BYTES, KernelFrameKind, encode_frame, encode_head
from pliant.serve.protocol.tcp_link import LOOK_EVERY_S, SILENT_S
from pliant.serve.protocol.tls_stream import trust_only


class Network:
    """A gateway that other machines reach, and how they do."""

    def __init__(self, world: Played, at: tuple[str, int], certificate: Path) -> None:
        self.world = world
        self.at = at
        self._trust = trust_only(certificate)
        self._plain: list[asyncio.StreamWriter] = []

    async def connect(self) -> FakeKernel:
        kernel = FakeKernel(*await asyncio.open_connection(*self.at, ssl=self._trust, server_hostname="127.0.0.1"))
        self.world.kernels.append(kernel)
        return kernel

    async def kernel(self, task: str = "job-9.0") -> FakeKernel:
        return await self.world.kernel(task, over=await self.connect())

    async def plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, and say nothing."""
        ends = await asyncio.open_connection(*self.at)
        self._plain.append(ends[1])
        return ends

    def close(self) -> None:
        for writer in (*self._plain, *(kernel._writer for kernel in self.world.kernels)):
            writer.transport.abort()


@contextlib.asynccontextmanager
async def network(home: Path, host: str = "127.0.0.1", memory: LinkMemory | None = None) -> AsyncIterator[Network]:
    tls = make_certificate(home)
    with contextlib.closing(bind_kernels(host, 0)) as sock:
        port = KernelPort(sock=sock, context=shown_by(tls))
        async with played(endpoint(version()), port=port, memory=memory) as world:
            found = Network(world, sock.getsockname()[:2], tls.trusted)
            try:
                yield found
            finally:
                found.close()
                await asyncio.sleep(0.01)  # asyncio's TLS needs some turns of the loop to end


def file_of(kernel: FakeKernel) -> int:
    return int(kernel._writer.get_extra_info("socket").fileno())


def bounds_pauses() -> bool:
    """Tell whether this system can bound the pauses in which TCP asks again."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock, contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, tcp_link._RTO_MAX_MS, 1000)
        return True
    return False


async def is_ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 16):
                pass
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("num_bytes", [2, 3 << 20])
def test_a_kernel_of_another_machine_answers_as_one_of_this_machine_does(
    tmp_path: Path, host: str, num_bytes: int
) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path, host) as net:
            body = bytes(num_bytes)
            said = []
            for kernel in (await net.kernel(), await net.world.kernel("job-9.1")):
                posted = net.world.post(body)
                kernel.answer(await kernel.request())
                answer = await posted
                said.append((answer.status_code, answer.content))
                kernel.send(KernelFrameKind.DRAIN)
                assert await kernel.next() is None
            assert said == [(200, body)] * 2

    test()


def test_no_memory_is_shared_with_another_machine(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            kernel = await net.connect()
            kernel.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
            assert (await kernel.take(KernelFrameKind.WELCOME)).header["shared"] is False
            kernel.send(KernelFrameKind.READY, metadata={})
            posted = net.world.post(b"a")
            request = await kernel.request()
            kernel.send(KernelFrameKind.RESULT, id=request.header["id"], status=200, at=0, bytes=1 << 20)
            assert await kernel.next() is None
            posted.cancel()

    test()


def test_a_wrong_token_costs_its_connection_after_a_while_and_nobody_else(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            good, bad = await net.kernel(), await net.connect()
            bad.send(KernelFrameKind.HELLO, task="job-9.0", token="a guess")
            await net.world.until(lambda: "a guess" in net.world.gateway._kernels._strangers.values())
            net.world.advance(HELLO_WITHIN_S + 1)
            assert await bad.next() is None
            await good.take(KernelFrameKind.PING)
            posted = net.world.post(b"a")
            good.answer(await good.request())
            assert (await posted).content == b"a"

    test()


def test_a_stranger_sends_a_short_frame_and_no_more_and_no_tls_is_none(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            long = await net.connect()
            long.write(encode_head(KernelFrameKind.HELLO, {"token": "x" * MAX_HELLO_BYTES}, 0)[:9])
            assert await long.next() is None
            for said in (
                encode_frame(KernelFrameKind.HELLO, {"task": "job-9.0"}),
                b"GET / HTTP/1.1\r\n\r\n",
                b"\x16" * 99,
            ):
                reader, writer = await net.plain()
                writer.write(said)
                assert await is_ended(reader)

    test()


@pytest.mark.parametrize("spoken", [b"", b"\x16\x03\x01"])
def test_many_who_connect_and_do_not_prove_themselves_keep_no_kernel_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: bytes
) -> None:
    monkeypatch.setattr(remote_kernels, "MOST_OF_ONE", 50)

    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            first = await net.kernel("job-9.0")
            strangers = [await net.plain() for _ in range(200)]
            for _, writer in strangers:
                writer.write(spoken)
            second = await net.kernel("job-9.1")
            listener = net.world.gateway._kernels
            await net.world.until(lambda: listener.remote.num_silent + len(listener._strangers) <= 50)
            posted = [net.world.post(b"a"), net.world.post(b"b")]
            for kernel in (first, second):
                kernel.answer(await kernel.request())
            assert [(await one).status_code for one in posted] == [200, 200]
            net.world.advance(HELLO_WITHIN_S + 1)
            for reader, _ in strangers:
                assert await is_ended(reader)

    test()


def test_strangers_of_one_network_do_not_push_out_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_kernels, "MOST_OF_ONE", 4)

    @in_loop
    async def test() -> None:
        async with network(tmp_path, "0.0.0.0") as net:  # all of 127.0.0.0/8 reach it
            waiting = await asyncio.open_connection("127.0.0.1", net.at[1], local_addr=("127.0.0.2", 0))
            for _ in range(20):
                await net.plain()
            remote = net.world.gateway._kernels.remote
            await net.world.until(lambda: remote.num_silent == 5)
            assert "127.0.0.2" in {one.network for one in remote._silent.values()}
            waiting[1].close()

    test()


@pytest.mark.slow
def test_requests_of_a_kernel_that_is_cut_off_go_to_another_one_within_seconds(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            gone = await net.kernel("job-9.0")
            posted = net.world.post(b"a")
            await gone.request()
            cut(file_of(gone))
            began = time.monotonic()
            net.world.post(b"b")  # it is given this, too
            other = await net.kernel("job-9.1")
            requests = {bytes(frame.body): frame for frame in (await other.request(), await other.request())}
            assert SILENT_S - 1 <= time.monotonic() - began <= SILENT_S + 4 * LOOK_EVERY_S
            other.answer(requests[b"a"])
            assert (await posted).content == b"a"

    test()


@pytest.mark.slow
def test_an_idle_kernel_that_is_cut_off_is_forgotten_within_seconds(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            gone = await net.kernel()
            cut(file_of(gone))
            began = time.monotonic()
            await net.world.until(lambda: not net.world.gateway.ready())
            assert time.monotonic() - began <= SILENT_S + 1 + 4 * LOOK_EVERY_S

    test()


@pytest.mark.slow
def test_a_short_cut_costs_nothing_and_neither_does_a_kernel_that_computes_and_reads_nothing(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            kernel, body = await net.kernel(), bytes(24 << 20)
            kernel._writer.transport.pause_reading()  # type: ignore[attr-defined]
            posted = net.world.post(body)
            await asyncio.sleep(SILENT_S + 1.5)  # far longer than a machine may be silent, with its window closed
            assert net.world.gateway.ready()
            cut(file_of(kernel))
            await asyncio.sleep(1.0)
            mend(file_of(kernel))
            kernel._writer.transport.resume_reading()  # type: ignore[attr-defined]
            kernel.answer(await kernel.request())
            assert (await posted).content == body

    test()


@pytest.mark.slow
@pytest.mark.skipif(not bounds_pauses(), reason="before Linux 6.15 the pauses of TCP grow, and a cut is seen later")
def test_a_kernel_that_has_read_nothing_for_long_is_missed_as_soon_when_it_is_cut_off(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path) as net:
            gone = await net.kernel()
            gone._writer.transport.pause_reading()  # type: ignore[attr-defined]
            net.world.post(bytes(24 << 20))
            await asyncio.sleep(4.0)  # the pauses in which the system asks whether it can send would be long by now
            cut(file_of(gone))
            began = time.monotonic()
            await net.world.until(lambda: not net.world.gateway.ready())
            assert time.monotonic() - began <= SILENT_S + 1 + 4 * LOOK_EVERY_S

    test()


def test_what_a_kernel_does_not_read_is_counted_and_it_is_given_no_more(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        memory = LinkMemory()
        async with network(tmp_path, memory=memory) as net:
            kernel = await net.kernel()
            kernel._writer.transport.pause_reading()  # type: ignore[attr-defined]
            posted = net.world.post(bytes(2 * MAX_UNREAD_BYTES))
            await net.world.until(lambda: memory.num_bytes > MAX_UNREAD_BYTES)
            net.world.post(b"waits")
            await net.world.until(lambda: net.world.load() == (1, 1))
            kernel._writer.transport.resume_reading()  # type: ignore[attr-defined]
            kernel.answer(await kernel.request(), b"")
            assert (await posted).status_code == 200
            await kernel.request()
            assert memory.num_bytes < MAX_UNREAD_BYTES

    test()


def test_what_listens_is_told_from_elsewhere_by_its_certificate_alone(tmp_path: Path) -> None:
    @in_loop
    async def test() -> None:
        async with network(tmp_path / "one") as net:
            other = make_certificate(tmp_path / "two")
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection(*net.at, ssl=trust_only(other.trusted), server_hostname="127.0.0.1")
            await net.kernel()

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    test()


def test_a_host_that_is_no_address_of_this_machine_is_listened_for_at_all_of_them() -> None:
    with contextlib.closing(bind_kernels("203.0.113.7", 0)) as sock:
        port = sock.getsockname()[1]
        for at in ("127.0.0.1", "::1"):
            socket.create_connection((at, port)).close()
