"""A kernel as a process, against a gateway of the test: what it loads, and how it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.entry.warm_task import end, warm_task
from tests.serve.runner.fake_gateway import FakeGateway, Listener, listening

from pliant.core.job import JobId, TaskId
from pliant.core.serving_profile import Runner
from pliant.core.task_environment import ServingTask, TaskEnvironment
from pliant.ibm import modules
from pliant.serve.protocol.frames import KernelFrameKind as Kind

pytestmark = pytest.mark.timeout(180)

TIMEOUT_S = 60.0
ECHO = "class Model:\n    def predict(self, batch):\n        return batch\n"
REDHARE = """
import os
import redhareapiversion
from redhareapi import Kernel

class Echo(Kernel):
    def on_kernel_start(self, kernel_context):
        os.write(1, b"\\xff\\x00 binary\\n")
        print("lone \\udcff", flush=True)
    def on_task_invoke(self, task_context):
        while task_context is not None:
            data = task_context.get_input_data()
            if data == "exit":
                raise SystemExit(4)
            if data == "die":
                os._exit(9)
            if data == "env":
                data = os.environ.get("PLIANT_KERNEL_TOKEN", "gone") + " " + os.environ["REDHARE_MODEL_NAME"]
            task_context.set_output_data(data)
            task_context = task_context.next()
    def on_kernel_shutdown(self):
        print("shut down", flush=True)

Echo().run()
"""


@dataclass(frozen=True, slots=True)
class Started:
    """A kernel that runs."""

    listener: Listener
    process: ForkServerProcess
    folder: Path
    pid: int

    def ended(self) -> tuple[int, str, str]:
        return end(self.process, self.folder, TIMEOUT_S)


def variables(folder: Path, listener: Listener, runner: Runner, file: str) -> dict[str, str]:
    environment = TaskEnvironment(
        task_id=TaskId("job-1.1"),
        job_id=JobId("job-1"),
        serving=ServingTask(
            runner=runner,
            file=file,
            endpoint="digits",
            version=3,
            folder=str(folder),
            kernel="job-1.1",
            gateway=str(listener.path),
            token="secret",
        ),
    )
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PLIANT_")}
    return {**ours, **environment.to_env(), "PYTHONPATH": str(Path(modules.__file__).parent), "PYTHONUNBUFFERED": "1"}


@contextmanager
def kernel(folder: Path, text: str, runner: Runner = "python") -> Iterator[Started]:
    """Run a kernel as the zygote does: in a fork that has imported everything."""
    file = "kernel.py" if runner == "redhare" else "serve.py"
    code = folder / "model"
    code.mkdir()
    (code / file).write_text(text)
    with listening(folder) as listener, warm_task(code, variables(code, listener, runner, file), file) as process:
        assert process.pid is not None
        yield Started(listener, process, code, process.pid)


def drained(started: Started, gateway: FakeGateway) -> tuple[int, str, str]:
    """Send SIGTERM, see the kernel drain, and return how it ended."""
    os.kill(started.pid, signal.SIGTERM)
    gateway.expect(Kind.DRAIN)
    gateway.close()
    return started.ended()


def test_python_class_is_served_until_sigterm(tmp_path: Path) -> None:
    with kernel(tmp_path, ECHO) as started:
        gateway = started.listener.accept()
        hello = gateway.welcome()
        assert gateway.expect(Kind.READY).header["metadata"]["platform"] == "python"
        heard = gateway.exchange('{"a": 1}', "2")
        code, _, err = drained(started, gateway)

    assert hello == {"task": "job-1.1", "token": "secret"}
    assert [one.body for one in heard] == [b'{"a": 1}', b"2"]
    assert (code, err) == (0, "")


def test_ibms_kernel_is_served_until_sigterm_whatever_it_prints(tmp_path: Path) -> None:
    with kernel(tmp_path, REDHARE, "redhare") as started:
        gateway = started.listener.accept()
        gateway.ready()
        heard = gateway.exchange("env")[0]
        os.kill(started.pid, signal.SIGTERM)
        gateway.expect(Kind.DRAIN)
        gateway.close()
        started.process.join(TIMEOUT_S)
        printed = (started.folder / "stdout").read_bytes()

    assert heard.body == b"gone digits"
    assert printed == b"\xff\x00 binary\nlone \\udcff\nshut down\n"


@pytest.mark.parametrize(("asked", "code"), [("exit", 4), ("die", 9)])
def test_kernel_that_ends_itself_is_seen_to(tmp_path: Path, asked: str, code: int) -> None:
    with kernel(tmp_path, REDHARE.replace("os.write", "0 and os.write"), "redhare") as started:
        gateway = started.listener.accept()
        gateway.ready()
        (number,) = gateway.ask(asked)
        if asked == "exit":
            assert gateway.answers(number)[0].status == 500
            gateway.expect(Kind.DRAIN)
        assert gateway.is_closed()
        ended, _, _ = started.ended()

    assert ended == code


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (
            "x = 1",
            "pliant: the model was not loaded: serve.py has no public class with `predict` or `stream`; define one",
        ),
        (ECHO + "    def load(self):\n        raise OSError('no weights')", "loaded: OSError: no weights"),
        (ECHO + "import sys\nsys.exit()", "the model was not loaded: it has ended the process with sys.exit(None)"),
        ("def broken(:", "the model was not loaded: SyntaxError: invalid syntax"),
    ],
)
def test_model_that_does_not_load_ends_the_kernel_with_a_clear_last_line(tmp_path: Path, text: str, last: str) -> None:
    with kernel(tmp_path, text) as started:
        gateway = started.listener.accept()
        gateway.expect(Kind.HELLO)
        assert gateway.is_closed()
        code, _, err = started.ended()

    assert code == 1
    assert last in err.splitlines()[-1]


def test_sigterm_ends_a_load_at_once(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    os.mkfifo(reached)
    text = (
        f"{ECHO}    def load(self):\n        open({str(reached)!r}, 'w').close()\n        __import__('time').sleep(600)"
    )

    with kernel(tmp_path, text) as started:
        reached.read_bytes()
        os.kill(started.pid, signal.SIGTERM)
        code, _, _ = started.ended()

    assert code == 0


def test_gateway_that_closes_does_not_end_a_load_nor_what_follows(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    text = f"{ECHO}    def load(self):\n        open({str(go_on)!r}).close()"

    with kernel(tmp_path, text) as started:
        first = started.listener.accept()
        first.welcome()
        first.close()
        go_on.write_bytes(b"")
        second = started.listener.accept()
        second.ready()
        second.close()
        third = started.listener.accept()
        third.ready()
        heard = third.exchange("1")
        code, _, err = drained(started, third)

    assert (code, heard[0].body) == (0, b"1")
    assert err == "pliant: the gateway has closed the connection\n"


def test_sigterm_in_a_batch_hands_back_at_once_what_was_not_begun(tmp_path: Path) -> None:
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    os.mkfifo(began)
    os.mkfifo(go_on)
    text = f"""class Model:
    max_batch_size = 1
    def predict(self, batch):
        open({str(began)!r}, "w").close()
        open({str(go_on)!r}).close()
        return batch
"""
    with kernel(tmp_path, text) as started:
        gateway = started.listener.accept()
        gateway.ready()
        first, second = gateway.ask("1", "2")
        began.read_bytes()
        os.kill(started.pid, signal.SIGTERM)
        gateway.expect(Kind.DRAIN)
        returned = gateway.expect(Kind.RETURN).header["ids"]  # the batch is still computed
        go_on.write_bytes(b"")
        heard = gateway.answers(first)
        gateway.close()
        code, _, _ = started.ended()

    assert (code, returned, heard[0].body) == (0, [second], b"1")


def test_sigterm_in_a_batch_hands_back_to_each_gateway_what_it_has_given(tmp_path: Path) -> None:
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    os.mkfifo(began)
    os.mkfifo(go_on)
    text = f"""class Model:
    max_batch_size = 1
    def predict(self, batch):
        open({str(began)!r}, "w").close()
        open({str(go_on)!r}).close()
        return batch
"""
    with listening(tmp_path, 1) as other_listener, kernel(tmp_path, text) as started:
        gateway, other = started.listener.accept(), other_listener.accept()
        gateway.ready()
        other.ready()
        first, *rest = gateway.ask("1", "2", "3")
        began.read_bytes()
        others = other.ask("4", "5")
        os.kill(started.pid, signal.SIGTERM)
        for one in (gateway, other):
            one.expect(Kind.DRAIN)  # the batch is still computed
        assert gateway.expect(Kind.RETURN).header["ids"] == rest
        go_on.write_bytes(b"")
        assert gateway.answers(first)[0].body == b"1"
        assert other.expect(Kind.RETURN).header["ids"] == others
        gateway.close()
        other.close()
        code, _, err = started.ended()

    assert (code, err) == (0, "")


def test_threads_that_a_model_leaves_behind_do_not_keep_its_process(tmp_path: Path) -> None:
    text = f"import threading\nthreading.Thread(target=threading.Event().wait).start()\n{ECHO}"

    with kernel(tmp_path, text) as started:
        gateway = started.listener.accept()
        gateway.ready()
        code, _, _ = drained(started, gateway)

    assert code == 0


def test_children_of_a_model_are_no_kernels(tmp_path: Path) -> None:
    text = f"""import os, signal
child = os.fork()
if not child:
    signal.pause()
{ECHO}
    def load(self):
        os.kill(child, signal.SIGTERM)
        self.status = os.waitpid(child, 0)[1]
    def predict(self, batch):
        return [self.status]
"""
    with kernel(tmp_path, text) as started:
        gateway = started.listener.accept()
        gateway.ready()
        heard = gateway.exchange("1")
        drained(started, gateway)

    assert heard[0].body == b"%d" % signal.SIGTERM


def test_kernel_may_run_by_itself(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(ECHO)

    with listening(tmp_path) as listener:
        command = [sys.executable, "-m", "pliant.entry.kernel", "serve.py"]
        env = variables(tmp_path, listener, "python", "serve.py")
        with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
            gateway = listener.accept()
            gateway.ready()
            heard = gateway.exchange("1")
            process.terminate()
            gateway.expect(Kind.DRAIN)
            gateway.close()
            _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err, heard[0].body) == (0, "", b"1")
