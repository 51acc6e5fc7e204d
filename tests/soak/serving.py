"""Endpoints beside the trainings of a soak: deployed, asked all the time, and hurt; and what must be true of them.

`steady` always has a kernel and is always asked; `tidal` is asked in waves and holds no slot between them. Their model
multiplies by the factor of its version, so that every answer says which version it is of and whether it is right. A
move returns when both endpoints, as far as they are asked, have answered a request that began after it.
"""

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.contracts.faults import Act, Fault, Place, add, claims
from tests.e2e.pool import Pool
from tests.plain_http import NO_TLS
from tests.process_state import has_ended
from tests.soak import census
from tests.soak.asking import WAYS, Asking, Hurts
from tests.soak.asking import Place as GatewayPlace
from tests.soak.record import Record
from tests.soak.script import Move

from pliant.api.endpoints import EndpointView, KernelView
from pliant.client import Client
from pliant.core.endpoint import MAX_VERSIONS
from pliant.core.errors import Conflict, InvalidInput, PliantError

STEADY, TIDAL = "steady", "tidal"
EXECUTION_TIMEOUT_S = 3.0
LIMIT_S = 30.0
"""A request that a hung kernel holds is over by then, on a machine that does much else."""
PATIENCE_S = 60.0
FILL_S = 240.0
STEADY_RATE, TIDAL_RATE = 6.0, 8.0
"""Requests per second, over each way."""
LONG_STOP_S = 1.2
"""A kernel that a move stops for longer than this stays stopped until it is replaced."""
_MODEL = """
import os
import time
from pathlib import Path
from typing import Any

from tests.contracts.faults import Faults, Place


class Model:
    inputs = [{{"name": "x", "datatype": "FP32", "shape": [-1]}}]

    def load(self):
        if {factor} == 0:
            raise RuntimeError("this model cannot be loaded")
        self.faults = Faults(Path(os.environ["SOAK_FAULTS"]), task_id=os.environ["PLIANT_TASK_ID"])

    def predict(self, batch):
        self.faults.at(Place.STEP)
        time.sleep(0.02)
        return [{{"y": one["x"] * {factor}, "factor": one["x"] * 0 + {factor}}} for one in batch]
"""


@dataclass(slots=True, kw_only=True)
class Serving:
    """The endpoints of one soak."""

    folder: Path
    pool: Pool
    client: Callable[[], Client]
    record: Record
    hurts: Hurts = field(default_factory=Hurts)
    asking: Asking | None = None
    _factors: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Of the versions that were deployed, by endpoint; 0 does not load."""

    @contextmanager
    def going(self) -> Iterator[None]:
        """Serve and ask while the block runs; then remove the endpoints, and say what came of the requests."""
        client = self.client()
        for name, kernel_min in ((STEADY, 1), (TIDAL, 0)):
            self._deploy(name, kernel_min=kernel_min, kernel_max=3)
        for name in (STEADY, TIDAL):
            client.endpoints.wait(name, timeout_s=PATIENCE_S)
        token = (self.pool.home / "token").read_text().strip()
        asking = Asking(self._place(), token, self.hurts, self._is_factor, LIMIT_S)
        self.asking = asking
        asking.rates = {STEADY: STEADY_RATE, TIDAL: TIDAL_RATE}
        try:
            with asking.going():
                self._await_answers()
                yield
        finally:
            self.asking = None
            self.record.tell(asking.answers.table())
            for wrong in asking.answers.wrong:
                self.record.complain(wrong)
        for name in (STEADY, TIDAL):
            client.endpoints.remove(name)

    def fill(self) -> None:
        """Deploy until both endpoints keep as many versions as they ever will.

        The server holds something of each of them; from then on that grows no more.
        """
        deadline = time.monotonic() + FILL_S
        for name in (STEADY, TIDAL):
            while (num := len(self.client().endpoints.get(name).versions)) < MAX_VERSIONS:
                did = self._deploy(name)
                if time.monotonic() > deadline:
                    self.record.complain(f"{name} has {num} versions after {FILL_S:g} s of deploying; at last {did}")
                    return
        self._await_answers()

    def make(self, move: Move) -> None:
        """Do one thing to what serves; complain if answers do not go on."""
        try:
            did = MOVES[move.kind](self, move)
        except TimeoutError as error:
            self.record.complain(f"{move.number} {move.kind}: {error}\n{self._story()}")
            return
        self.record.num_moves[move.kind] += 1
        self.record.tell(f"{move.number:4} {move.kind}: {did}")
        self._await_answers()

    def warm_up(self, move_of: Callable[[str], Move], kinds: Iterable[str]) -> None:
        """Hurt what serves once in each of these ways, and let every thread begin that whose tokens are is asked of."""
        for kind in kinds:
            if not self.record.wrong:
                self.make(move_of(kind))
        client = httpx.Client(base_url=self._place().url, verify=NO_TLS, timeout=PATIENCE_S, trust_env=False)
        with client, ThreadPoolExecutor(16) as pool:

            def ask(number: int) -> int:
                headers = {"Authorization": f"Bearer nobody-{number}"}
                return client.post(f"/v2/models/{STEADY}/infer", json={}, headers=headers).status_code

            statuses = set(pool.map(ask, range(64)))
        if statuses != {401}:
            self.record.complain(f"tokens that open nothing were answered {statuses}")

    # kernels

    def kill_kernel(self, move: Move) -> str:
        name, kernel = self._kernel(move)
        if kernel is None or kernel.pid is None:
            return "there is none"
        with suppress(ProcessLookupError):
            os.kill(kernel.pid, signal.SIGKILL)
        return f"{kernel.task_id} of {name}"

    def stop_kernel(self, move: Move) -> str:
        """For a moment, or until it is replaced; then it may go on, and must do no harm."""
        name, kernel = self._kernel(move)
        if kernel is None or kernel.pid is None:
            return "there is none"
        with Hurts.lasting(self.hurts.kernel_hung[name]):
            with suppress(ProcessLookupError):
                os.kill(kernel.pid, signal.SIGSTOP)
            if move.seconds > LONG_STOP_S and kernel.state != "starting":  # a model may take long to load
                self._until(lambda: not _has(self.client().endpoints.get(name), kernel), "the kernel is replaced")
                how = "until it was replaced"
            else:
                time.sleep(move.seconds)
                how = f"for {move.seconds} s"
            with suppress(ProcessLookupError):
                os.kill(kernel.pid, signal.SIGCONT)
        return f"{kernel.task_id} of {name} {how}"

    def crash_kernel(self, move: Move) -> str:
        return self._fault(move, Act.EXIT if move.at_once else Act.KILL)

    def hang_kernel(self, move: Move) -> str:
        with Hurts.lasting(self.hurts.kernel_hung[STEADY]):
            did = self._fault(move, Act.HANG)
            at = time.monotonic()
            self._until(lambda: self._answered_since(STEADY, at), "it answers again")
            time.sleep(EXECUTION_TIMEOUT_S)  # what it held ends only then
        return did

    def _fault(self, move: Move, act: Act) -> str:
        plan, fault = self._plan(STEADY), f"serve-{move.number}-{time.monotonic_ns()}"
        add(plan, Fault(id=fault, place=Place.STEP, act=act, value=7))
        self._until(lambda: fault in {claim.id for claim in claims(plan)}, "the fault has happened")
        return f"the next of {STEADY} that computes"

    def _plan(self, name: str) -> Path:
        return self.folder / f"plan-{name}"

    def _kernel(self, move: Move) -> tuple[str, KernelView | None]:
        name = (STEADY, TIDAL)[move.job % 2]
        view = self.client().endpoints.get(name)
        kernels = [kernel for version in view.versions for kernel in version.kernels if kernel.state != "leaving"]
        return name, kernels[move.task % len(kernels)] if kernels else None

    # gateway and zygote

    def kill_gateway(self, move: Move) -> str:
        """The gateway; of several the one that keeps them, which takes all along, or one."""
        before = self._gateway_pid()
        if (several := self._gateway_processes()) and move.task % 3:
            return self._kill_one(several[move.task % len(several)], len(several))
        with Hurts.lasting(self.hurts.gateway_gone):
            os.kill(before, signal.SIGKILL)
            self._until(lambda: self._gateway_pid() != before, "another gateway has started")
            self._until(lambda: self._gateway_is_known(), "the server knows the next gateway")
            assert self.asking is not None
            self.asking.place = self._place()
            at = time.monotonic()
            self._until(lambda: self._answered_since(STEADY, at), "the next gateway answers")
        return f"another is there: {self._gateway_pid()}"

    def _kill_one(self, pid: int, num: int) -> str:
        """Kill one of several."""
        with Hurts.lasting(self.hurts.gateway_gone):
            os.kill(pid, signal.SIGKILL)
            self._until(
                lambda: pid not in (now := self._gateway_processes()) and len(now) == num, "another one has started"
            )
            at = time.monotonic()
            self._until(lambda: self._answered_since(STEADY, at), "the others answer")
        return f"one of {num}, {pid}"

    def stop_gateway(self, move: Move) -> str:
        """The gateway; of several, one."""
        several = self._gateway_processes()
        pid = several[move.task % len(several)] if several else self._gateway_pid()
        seconds = 3 * move.seconds
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        if pid not in (self._gateway_pid(), *self._gateway_processes()):
            self.record.complain(f"the gateway {pid} was stopped, and another was started beside it")
        return f"for {seconds:.1f} s" + f", one of {len(several)}" * bool(several)

    def kill_zygote(self, move: Move) -> str:
        pid = self._zygote_pid()
        os.kill(pid, signal.SIGKILL)
        return f"process {pid}"

    def stop_zygote(self, move: Move) -> str:
        pid, seconds = self._zygote_pid(), 3 * move.seconds
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        return f"process {pid} for {seconds:.1f} s"

    def _gateway_pid(self) -> int:
        record = self._until(self._gateway_record, "the gateway has written where it is")
        return int(record["pid"])

    def _gateway_processes(self) -> list[int]:
        """Return those that answer, if there are several."""
        keeper = self._gateway_pid()
        with suppress(OSError):
            children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
            return [int(child) for child in children if not has_ended(int(child))]
        return []

    def _gateway_record(self) -> dict[str, object] | None:
        with suppress(OSError, ValueError):
            found: dict[str, object] = json.loads((self.pool.home / "gateway" / "gateway.json").read_text())
            return found
        return None

    def _gateway_is_known(self) -> bool:
        record = self._gateway_record()
        view = self.client().endpoints.get(STEADY)
        return record is not None and view.http_url == record["url"] and bool(view.grpc_address)

    def _zygote_pid(self) -> int:
        """Return the newest: the one that starts what is started now."""
        return max(process.pid for process in census.count(self.pool.home).role("zygote"))

    # versions

    def deploy(self, move: Move) -> str:
        if move.task % 4 == 0:
            return self._deploy(_name(move), breaks=True)
        return self._deploy(_name(move))

    def canary(self, move: Move) -> str:
        return self._deploy(_name(move), traffic=10 * move.size)

    def roll_back(self, move: Move) -> str:
        try:
            view = self.client().endpoints.rollback(_name(move))
        except Conflict as error:
            return f"of {_name(move)}: {error}"
        return f"{_name(move)} to {view.exchange or view.current}"

    def scale(self, move: Move) -> str:
        bounds: dict[str, Any] = {
            "kernel_min": move.task % 2 + (_name(move) == STEADY),
            "kernel_max": max(2, min(4, move.size)),
        }
        try:
            self.client().endpoints.change(_name(move), **bounds)
        except InvalidInput as error:
            return f"{_name(move)}: {error}"
        return f"{_name(move)}: {bounds}"

    def tide(self, move: Move) -> str:
        assert self.asking is not None
        rate = (0.0, TIDAL_RATE / 4, TIDAL_RATE, 2 * TIDAL_RATE)[move.task % 4]
        self.asking.rates[TIDAL] = rate
        return f"{TIDAL} is asked {2 * rate:g} times a second"

    def _deploy(self, name: str, *, breaks: bool = False, **settings: Any) -> str:
        factor = 0 if breaks else len(self._factors[name]) + 2
        self._factors[name].append(factor)
        folder = self.folder / f"{name}-{len(self._factors[name])}"
        folder.mkdir(parents=True)
        (folder / "serve.py").write_text(_MODEL.format(factor=factor))
        try:
            view = self.client().endpoints.deploy(
                name,
                folder,
                env={"SOAK_FAULTS": str(self._plan(name))},
                execution_timeout_s=EXECUTION_TIMEOUT_S,
                release_delay_s=2.0,
                **settings,
            )
        except (Conflict, InvalidInput) as error:
            return f"{name}: {error}"
        return f"{name}: version {view.versions[-1].number}, factor {factor}" + f" {settings}" * bool(settings)

    def _is_factor(self, name: str, factor: float) -> bool:
        return factor != 0 and factor in self._factors[name]

    # what must be true

    def _place(self) -> GatewayPlace:
        view = self._until(lambda: (v := self.client().endpoints.get(STEADY)).grpc_address and v, "there is a gateway")
        return GatewayPlace(url=view.http_url, grpc_address=view.grpc_address)

    def _answered_since(self, name: str, at: float) -> bool:
        assert self.asking is not None
        return all(self.asking.answers.newest.get((name, way), 0.0) > at for way in WAYS)

    def _await_answers(self) -> None:
        assert self.asking is not None
        at = time.monotonic()
        for name, rate in self.asking.rates.items():
            if rate:
                try:
                    self._until(lambda: self._answered_since(name, at), f"{name} answers")  # noqa: B023 - called here
                except TimeoutError as error:
                    self.record.complain(f"{error}\n{self._story()}")
        for wrong in self.asking.answers.wrong:
            self.record.complain(wrong)
        self.asking.answers.wrong.clear()

    def _story(self) -> str:
        """Return how the endpoints stand, for what went wrong."""
        told = []
        for name in (STEADY, TIDAL):
            try:
                view = self.client().endpoints.get(name)
            except PliantError as error:
                told.append(f"{name}: {error}")
                continue
            told.append(f"{name}: {view.state} {view.reason}; {view.exchange}; traffic now and kernels:")
            told += [
                f"  {one.number} {one.state}: {one.traffic} %, {one.num_ready} of {one.num_kernels} ready, "
                f"{one.wanted} wanted: {one.demand}; {one.why}"
                for one in view.versions
                if one.num_kernels or one.traffic or one.wanted
            ]
        return "\n".join(told)

    def _until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for something.

        Raises:
            TimeoutError: it did not come.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE_S:g} s for: {what}")
            time.sleep(0.05)
        return value


def _name(move: Move) -> str:
    return (STEADY, TIDAL)[move.job % 2]


def _has(view: EndpointView, kernel: KernelView) -> bool:
    return any(one.task_id == kernel.task_id for version in view.versions for one in version.kernels)


MOVES: dict[str, Callable[[Serving, Move], str]] = {
    "kill kernel": Serving.kill_kernel,
    "stop kernel": Serving.stop_kernel,
    "crash kernel": Serving.crash_kernel,
    "hang kernel": Serving.hang_kernel,
    "kill gateway": Serving.kill_gateway,
    "stop gateway": Serving.stop_gateway,
    "kill zygote": Serving.kill_zygote,
    "stop zygote": Serving.stop_zygote,
    "deploy": Serving.deploy,
    "canary": Serving.canary,
    "roll back": Serving.roll_back,
    "scale": Serving.scale,
    "tide": Serving.tide,
}
