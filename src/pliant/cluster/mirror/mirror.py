"""A machine's files of jobs, where it does not see the server's state folder; implements `cluster.agent.file_mover`.

Three kinds of threads: some bring what tasks need, some send files, some send logs, so that a large file keeps no log
waiting. One thread looks at what is due: logs four times a second, files every other second or less often if that is
much work, what tasks ask for with the logs. While no server is there everything waits; a task's exit is told when all
that it wrote is with the server, and until then its slots are its own.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pliant.cluster.agent.file_mover import FilesReady
from pliant.cluster.mirror.bringing import Bringer, Choose, newest_alone
from pliant.cluster.mirror.brought import Brought
from pliant.cluster.mirror.building import BuiltEnvironments, EnvironmentMaker, UnfitMachineError, remove_built
from pliant.cluster.mirror.connection import FileConnection, FileServer
from pliant.cluster.mirror.connections import FileConnections
from pliant.cluster.mirror.grants import ADDRESS, JOBS, environments_in, paths_of
from pliant.cluster.mirror.job import CHECKPOINTS, LOGS, RESULT, MirroredJob, MirroredJobs, job_folder
from pliant.cluster.mirror.job_sender import JobSender
from pliant.cluster.mirror.messages import Claim
from pliant.cluster.mirror.removing import UNSENT, Removing
from pliant.cluster.zygote.records import Record
from pliant.core.errors import Conflict, NoSpace, NotFound, PliantError, Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.ports import StartOrder
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.taking import append_at, remove_file

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.25
_FILES_S: Final = 2.0
_FILES_SHARE: Final = 20.0
"""Looking at files takes a twentieth of a thread's time at most;"""
_ASKED_SHARE: Final = 4.0
"""if tasks ask for it again and again, a fifth."""
_ADDRESS_S: Final = 10.0
_ADDRESS_GROWTH: Final = 1.5
_AGAIN_S: Final = 1.0
_UNWANTED_S: Final = 60.0
_NUM_REFUSALS: Final = 3
"""So often a file is offered that the server does not take, before its task's exit is told without."""
_NEEDED: Final = (f"{RESULT}/model/", f"{RESULT}/{CHECKPOINTS}/")
"""What a training that ends, or other trials that begin from it, cannot be without."""
_NUM_BRINGING, _NUM_SENDING, _NUM_LOGGING = 4, 4, 2
_NUM_BUILDING: Final = 16
"""Tasks that wait for environments of this machine's own keep none waiting that has nothing to wait for."""


class Mirror:
    """Brings and sends the files of a machine's tasks.

    Args:
        server: how it is reached.
        bringer: knows where what lies.
        state_dir: the agent's own folder.
        maker: builds environments; None: the server's work here.
        keeps_address: what says where the server is, is wanted here at any time, not by tasks alone.
    """

    def __init__(
        self,
        server: FileServer,
        bringer: Bringer,
        state_dir: Path,
        maker: EnvironmentMaker | None = None,
        *,
        keeps_address: bool = False,
    ) -> None:
        self._connections = FileConnections(server)
        self._bringer = bringer
        self._brought = Brought(state_dir)
        self._jobs = MirroredJobs(bringer.home)
        self._is_closed = threading.Event()
        self._sender = JobSender(connections=self._connections, is_closed=self._is_closed)
        self._maker = maker
        self._built = (
            None
            if maker is None
            else BuiltEnvironments(connections=self._connections, bringer=bringer, brought=self._brought, maker=maker)
        )
        self._removing = Removing(bringer, self._brought, self._jobs)
        self._done: deque[FilesReady] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._said = ""
        self._is_moved = threading.Event()
        self._keeps_address = keeps_address
        self._bringing = ThreadPoolExecutor(_NUM_BRINGING, "pliant-bring")
        self._building = ThreadPoolExecutor(_NUM_BUILDING, "pliant-build")
        self._sending = ThreadPoolExecutor(_NUM_SENDING, "pliant-send")
        self._logging = ThreadPoolExecutor(_NUM_LOGGING, "pliant-logs")
        self._thread = threading.Thread(target=self._run, name="pliant-mirror", daemon=True)
        self._thread.start()

    # what the agent asks

    def fileno(self) -> int:
        return self._wake

    def bring(self, order: StartOrder) -> None:
        self._jobs.expect(order.task_id)
        is_built = self._built is not None and self._built.folders(order)
        threads = self._building if is_built else self._bringing
        threads.submit(self._report, order.task_id, lambda: self._bring(order))

    def adopt(self, record: Record) -> None:
        self._jobs.adopt(record.task_id, record.job)

    def send_back(self, record: Record) -> None:
        self._sending.submit(self._report, record.task_id, lambda: self._send_back(record))

    def forget(self, task_id: TaskId) -> None:
        self._jobs.let_go(task_id)

    def receive(self) -> Collection[FilesReady]:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        return [self._done.popleft() for _ in range(len(self._done))]

    def retain(self, job_ids: Collection[JobId]) -> None:
        self._bringing.submit(self._top, lambda: self._removing.retain(frozenset(job_ids)))

    def refresh(self) -> None:
        """Look at once where the server is: it may be another one."""
        self._is_moved.set()

    def close(self) -> None:
        self._is_closed.set()
        self._thread.join(_AGAIN_S)
        if self._maker is not None:
            self._maker.close()
        for threads in (self._bringing, self._building, self._sending, self._logging):
            threads.shutdown(wait=False, cancel_futures=True)
        self._connections.close()
        if self._bringer.neighbours is not None:
            self._bringer.neighbours.close()

    # what threads do

    def _report(self, task_id: TaskId, work: Callable[[], str]) -> None:
        """Do something for a task, and tell the agent."""
        is_unfit = False
        try:
            trouble = work()
        except Exception as error:  # noqa: BLE001 - the top of a thread
            is_unfit = isinstance(error, UnfitMachineError)
            is_known = isinstance(error, PliantError | OSError)
            _log.log(
                logging.WARNING if is_known else logging.ERROR, "files of %s: %s", task_id, error, exc_info=not is_known
            )
            trouble = str(error) or type(error).__name__
        self._done.append(FilesReady(task_id=task_id, trouble=trouble, is_unfit=is_unfit))
        os.eventfd_write(self._wake, 1)

    def _top(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (PliantError, OSError) as error:
            self._say(f"files wait: {error}")
        except Exception:  # noqa: BLE001 - the top of a thread
            _log.exception("files are looked at again after an error")

    def _say(self, words: str) -> None:
        """Log what keeps files from being brought or sent, once as long as it is the same."""
        if words != self._said:
            _log.info("%s", words)
        self._said = words

    def _bring(self, order: StartOrder) -> str:
        job = self._jobs.of(order.task_id)
        has_room = False
        try:
            while True:
                try:
                    self._wait_for_unwanted(job)
                    self._build_all(order, job)
                    self._bring_all(order, job)
                except NoSpace:
                    if has_room:
                        raise
                    has_room = True
                    self._removing.remove_unused(time.time())
                except Unavailable as error:
                    self._say(f"files of {order.task_id} wait: {error}")
                    if self._is_closed.wait(_AGAIN_S):
                        raise
                else:
                    return ""
        finally:
            self._jobs.expect_no_more(job)

    def _wait_for_unwanted(self, job: MirroredJob) -> None:
        """Wait until tasks have ended that the server has given up: what they wrote is of a history that is over.

        Raises:
            Conflict: one does not end.
        """
        until = time.monotonic() + _UNWANTED_S
        while unwanted := [task_id for task_id in list(job.tasks) if not self._is_wanted(task_id)]:
            if time.monotonic() > until or self._is_closed.wait(_LOOK_S):
                raise Conflict(f"{unwanted[0]}, which nobody wants any more, has not ended on this machine")

    def _is_wanted(self, task_id: TaskId) -> bool:
        try:
            with self._connections.borrow() as connection:
                connection.claim(Claim(task_id=task_id))
        except NotFound:
            return False
        return True

    def _build_all(self, order: StartOrder, job: MirroredJob) -> None:
        """Have the environments here that this machine builds itself."""
        if self._built is None:
            return
        for folder in self._built.folders(order):
            job.paths.add(str(folder))
            self._built.provide(order, folder)

    def _bring_all(self, order: StartOrder, job: MirroredJob) -> None:
        claim = Claim(task_id=order.task_id, paths=paths_of(order), ticket=order.ticket)
        with job.files, self._connections.borrow() as connection:
            connection.claim(claim)
            own = {tree.path for tree in job.trees.values()}
            for path in claim.paths:
                if path in own and job.tasks:
                    continue  # others of this job write there
                if self._built is not None and environments_in((path,), self._bringer.home):
                    continue
                self._bring_path(connection, job, path, _left_out(path, job, order))
            for folder in (*job.trees, RESULT + "/model", f"{RESULT}/{LOGS}", f"{RESULT}/{CHECKPOINTS}"):
                self._bringer.make_folder(job_folder(self._bringer.home, job.job_id), folder)
            job.tasks[order.task_id] = None

    def _bring_path(
        self,
        connection: FileConnection,
        job: MirroredJob,
        path: str,
        but: Collection[str],
        choose: Choose = tuple,
    ) -> None:
        tree = self._bringer.tree(path, job_id=job.job_id)
        if tree is None:
            return
        remove_built(self._bringer, self._brought, path)
        known = self._brought.digest(path) if tree.is_own and self._bringer.is_there(tree) else ""
        try:
            digest, brought = self._bringer.bring(connection, tree, known=known, but=but, choose=choose)
        except NotFound as error:
            _log.info("%s", error)  # an order may name what is not there
            return
        if tree.is_own:
            self._brought.note(path, digest, time.time())
            job.paths.add(path)
        if (sent := job.tree_of(path)) is not None:
            sent.note(brought)
        elif tree.place.root.parent.name == JOBS:
            job.uses.add(tree.place.root.name)

    def _send_back(self, record: Record) -> str:
        job = self._jobs.of(record.task_id, record.job)
        troubles: list[str] = []
        try:
            for _ in range(_NUM_REFUSALS):
                troubles = self._sender.send_all(job, record.task_id)
                if not troubles or self._is_closed.wait(_AGAIN_S):
                    break
            if troubles:
                (job.root / UNSENT).touch()
        except NotFound as error:
            _log.warning("what %s wrote since then is not wanted any more: %s", record.task_id, error)
        finally:
            self._jobs.let_go(record.task_id, record.job)
        return "; ".join(troubles)

    def _run(self) -> None:
        pause_s = _LOOK_S if self._keeps_address else _ADDRESS_S
        address_at = time.monotonic() + pause_s
        while not self._is_closed.wait(_LOOK_S):
            jobs = [job for job in self._jobs.all() if job.tasks]
            for job in jobs:
                if not job.is_logging:
                    job.is_logging = True
                    self._logging.submit(self._top, partial(self._look_at_logs, job))
                now = time.monotonic()
                if not job.is_sending and (now >= job.due_at or (now >= job.ask_at and job.asked())):
                    job.is_sending = True
                    self._sending.submit(self._top, partial(self._look_at_files, job))
            if self._is_moved.is_set():  # a server says where it is a moment after it takes links
                self._is_moved.clear()
                address_at, pause_s = 0.0, _LOOK_S
            if (jobs or self._keeps_address) and time.monotonic() >= address_at:
                pause_s = min(_ADDRESS_S, _ADDRESS_GROWTH * pause_s)
                address_at = time.monotonic() + pause_s
                self._bringing.submit(self._top, self._bring_address)

    def _look_at_logs(self, job: MirroredJob) -> None:
        try:
            with job.logs:
                for task_id in list(job.tasks)[:1]:
                    self._sender.send_logs(job, task_id)
        finally:
            job.is_logging = False

    def _look_at_files(self, job: MirroredJob) -> None:
        try:
            with job.files:
                began_at = time.monotonic()
                for task_id in list(job.tasks)[:1]:
                    if asked := job.asked():
                        self._answer(job, task_id, asked)
                    else:
                        for trouble in self._sender.send_files(job, task_id):
                            _log.warning("%s: the server does not take %s", job.job_id, trouble)
                took_s = time.monotonic() - began_at
        finally:
            job.is_sending = False
        job.ask_at = time.monotonic() + _ASKED_SHARE * took_s
        job.due_at = time.monotonic() + max(_FILES_S, _FILES_SHARE * took_s)

    def _answer(self, job: MirroredJob, task_id: TaskId, asked: Collection[UntrustedPath]) -> None:
        """Do what tasks ask for by files, once for all: send what is here, or bring the newest checkpoint as well."""
        why = ""
        try:
            troubles = self._sender.send_files(job, task_id, is_last=True)
            if missing := [one for one in troubles if one.startswith(_NEEDED)]:  # of others people are told at the end
                raise Conflict("; ".join(missing))
            if any(".ask-bring-" in one.name for one in asked):
                with self._connections.borrow() as connection:
                    connection.claim(Claim(task_id=task_id))
                    self._bring_path(connection, job, f"{job.results.path}/{CHECKPOINTS}", (), newest_alone)
        except Unavailable:
            raise  # it goes on asking
        except (PliantError, OSError) as error:
            why = str(error)
        for one in asked:
            with suppress(OSError):
                if why:
                    append_at(UntrustedPath(one.root, f"{one.inside}.failed"), 0, why.encode())
                remove_file(one)

    def _bring_address(self) -> None:
        tree = self._bringer.tree(str(self._bringer.home / ADDRESS), job_id="")
        if tree is not None:
            with self._connections.borrow() as connection:
                known = self._brought.digest(tree.path) if self._bringer.is_there(tree) else ""
                digest, _ = self._bringer.bring(connection, tree, known=known)
                if digest != known:
                    self._brought.note(tree.path, digest, time.time())


def _left_out(path: str, job: MirroredJob, order: StartOrder) -> tuple[str, ...]:
    """Return which names at the top of a path are not brought before a task begins."""
    if path != job.results.path:
        return ()
    later = tuple(folder.removeprefix(f"{path}/") for folder in order.later)
    return (LOGS, *(name for name in later if "/" not in name))
