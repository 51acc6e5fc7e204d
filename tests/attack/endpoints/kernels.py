"""What the code of a model must not reach from within its kernel: the gateway, other kernels, the machine."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from tests.attack.attack import REFUSED, Attack
from tests.attack.endpoints.stage import ADAS, BOBS, EXECUTION_S, MEMORY_BYTES, Stage, stage_of
from tests.attack.isolation import ACTS, WAYS, hashes, sleepers
from tests.attack.target import Target

READING: Final = (
    "the server's token",
    "the server's secret",
    "the server's pliant.db",
    "the gateway's log",
    "the gateway's gateway.json",
    "the gateway's lock",
    "the key of its certificate",
    "a list of the gateway's folder",
    "another's model, as its server keeps it",
    "another's model, as its kernel has it",
    "what another's kernel has written",
    "the temporary files of another's kernel",
    "the shared memory of another's kernel",
    "/proc/PID/environ of the gateway, the zygote, another's kernel",
    "/proc/PID/maps of the gateway, the zygote, another's kernel",
    "/proc/PID/mem of the gateway, the zygote, another's kernel",
    "the sockets of the gateway and of another's kernel, by descriptor",
    "the socket of kernels, removed",
    "the socket of kernels, moved",
    "a socket of its own in the place of the gateway's",
    "the address of the server, written anew",
    "the gateway's record, written anew",
)
WHOSE: Final = {"the server": "the gateway", "the zygote": "the zygote", "another's task": "another's kernel"}
"""What `processes.py` calls them, and what they are here."""
MEMORY: Final = (
    "variables of the server",
    "variables of the server's start, as the kernel shows them",
    "tokens of other jobs, and the server's key, in its memory",
    "descriptors that it was left",
)
WORDS: Final = (
    "the place of another's kernel, with its own token",
    "the place of another's kernel, without a token",
    "the place of another's kernel, with a token that is a list",
    "the place of another's kernel, with half a letter as its token",
    "another's job, by a task that begins as its own",
    "its own job, with its token cut short",
    "a job that is not there",
    "a task that is a path",
    "a task with a line feed and an escape",
    "a task of 40 digits",
    "a request in the place of its name",
    "an answer in the place of its name",
    "a frame of 4 GiB",
    "a header longer than its frame",
    "a header that is no object",
    "a header, nested 2,000 deep",
    "a kind that there is not",
    "HTTP",
    "nothing",
)
FRAMES: Final = (
    "READY with a body",
    "what only a gateway says",
    "a request",
    "requests handed back before it leaves",
    "an answer whose number is a text",
    "an answer whose number has 5,000 digits",
    "an answer of 300 MiB, announced",
    "a header of 2 MiB",
    "1,001 answers that nobody has asked for",
    "1,001 signs of life",
    "1,002 times that it is ready",
)
FORGED: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "a status of 99999": ("HTTP 502", {"status": 99999}, "{}"),
    "a status of 100": ("HTTP 502", {"status": 100}, "{}"),
    "a status of 304": ("HTTP 502", {"status": 304}, "{}"),
    "a status below zero": ("HTTP 502", {"status": -1}, "{}"),
    "a status that is a text": ("HTTP 502", {"status": "200\r\nSet-Cookie: a=b"}, "{}"),
    "a status that is a list": ("HTTP 502", {"status": [200]}, "{}"),
    "more JSON than it has bytes": ("HTTP 502", {"json": 10**9}, "{}"),
    "JSON of -1 bytes": ("HTTP 502", {"json": -1}, "{}"),
    "a type with a line feed and a header": ("HTTP 200", {"type": "text/plain\r\nSet-Cookie: a=b"}, "{}"),
    "a type that is an object": ("HTTP 200", {"type": {"a": 1}}, "{}"),
    "headers of its own": ("HTTP 200", {"headers": {"Set-Cookie": "a=b"}, "set-cookie": "a=b"}, "{}"),
    "a batch of -1 that took a year": ("HTTP 200", {"batch": -1, "busy_s": 3e7}, "{}"),
}
FLOODS: Final = (
    "a flood of connections to the gateway's socket, for three seconds",
    "a flood of frames, for three seconds",
)
MOST_KERNELS: Final = 200
NUM_ANSWERS: Final = 900


def _inside(script: str, name: str, more: Callable[[Target], dict[str, Any]] = lambda _: {}) -> Callable[[Target], str]:
    return lambda target: stage_of(target).seen_inside(script, name, lambda: more(target))


def _of_memory(target: Target) -> dict[str, Any]:
    """Return what the script knows secrets by; the token that it must not find is that of Ada's kernels."""
    return hashes(target, stage_of(target).kernel_of(ADAS)[0].rpartition(".")[0])


def _talks(_: Target) -> dict[str, Any]:
    return {"num_answers": NUM_ANSWERS, "most_kernels": MOST_KERNELS}


def _said(name: str) -> Callable[[Target], str]:
    return _inside("gateway.py", name, _talks)


def _flood(name: str) -> Callable[[Target], str]:
    """Return what lets the kernel flood the gateway, and says whether Ada was answered all the while."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        facts = stage.facts() | _talks(target)
        flooding = stage.meanwhile(lambda: stage.ask_bobs(how="play", script="gateway.py", facts=facts, only=name))
        answered = []
        while not flooding.done():
            answered.append(stage.answers())
        done = flooding.result()
        if not isinstance(done, httpx.Response) or '"done' not in done.text.replace("\\", ""):
            return f"not tried: {done}"
        return "Ada is answered" if len(answered) > 2 and all(answered) else f"{answered.count(False)} not answered"

    return play


def _lies(target: Target) -> str:
    """Let Bob's kernel answer with all numbers that there may be while Ada's waits; say what Ada gets."""
    stage = stage_of(target)
    body = b'{"value": 21, "seconds": 3}'
    asked = stage.meanwhile(lambda: stage.post(f"/dlim/v1/inference/{ADAS}", body).json())
    facts = stage.facts() | _talks(target)
    name = "answers to the requests of others, by their numbers"
    answer = stage.ask_bobs(how="play", script="gateway.py", facts=facts, only=name)
    if '\\"sent\\"' not in answer.text:
        return f"not tried: {answer.text[:150]}"
    got = asked.result(timeout=60)
    return "her own answer" if got == {"value": 42, "secret": target.secret} else f"{got}"


def _forged(fields: dict[str, Any], text: str) -> Callable[[Target], str]:
    """Return what lets Bob's kernel answer with a frame that lies; it says what a client of Bob's is sent."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        stage.place(BOBS)
        answer = stage.ask_bobs(how="forge", fields=fields, text=text, number="")
        if "set-cookie" in answer.headers or any(ord(letter) < 32 for letter in answer.text):
            return f"comes back: {dict(answer.headers)} {answer.text[:80]!r}"
        return f"HTTP {answer.status_code}" if stage.answers() else "Ada is not answered any more"

    return play


def _outlives(name: str, number: int) -> Callable[[Target], str]:
    """Return what says whether a process that the kernel has started lives on when its endpoint is stopped."""

    def play(target: Target) -> str:
        stage = stage_of(target) if number > 1 else started(target)
        seconds = 6_000_000 + target.server_pid
        begun = stage.seen_inside("outliving.py", name, lambda: {"seconds": seconds})
        if begun != "begun":
            return begun
        if target.bob.endpoints.get(BOBS).started:
            target.bob.endpoints.stop(BOBS)
        ended = target.becomes(lambda: not sleepers(f"{seconds}.{number}"), timeout_s=30.0)
        for pid in (left := sleepers(f"{seconds}.{number}")):
            os.kill(pid, 9)
        return "has ended" if ended else f"lives on, as {left}"

    return play


def started(target: Target) -> Stage:
    """Return the stage with a kernel of Bob's."""
    stage = stage_of(target)
    if not target.bob.endpoints.get(BOBS).started:
        target.bob.endpoints.start(BOBS)
    stage.place(BOBS)
    return stage


@contextmanager
def _shorter(target: Target) -> Iterator[None]:
    """Let a batch of Bob's take three seconds."""
    target.bob.endpoints.change(BOBS, execution_timeout_s=3.0)
    try:
        yield
    finally:
        target.bob.endpoints.change(BOBS, execution_timeout_s=EXECUTION_S)


def _deaf(target: Target) -> str:
    """Let Bob's kernel heed no SIGTERM, stop it, and say whether it ends when a batch would have had its time."""
    stage = started(target)
    pid = stage.kernel_of(BOBS)[1]
    stage.ask_bobs(how="deaf")
    with _shorter(target):
        target.bob.endpoints.stop(BOBS)
        ended = target.becomes(lambda: not os.path.exists(f"/proc/{pid}"), timeout_s=45.0)
    return "has ended" if ended else "lives on"


def _endless(target: Target) -> str:
    """Let Bob's kernel compute without end, and stop its endpoint; say whether it ends."""
    stage = started(target)
    pid = stage.kernel_of(BOBS)[1]
    with _shorter(target):
        answer = stage.ask_bobs(how="loop")
        ended = target.becomes(lambda: not os.path.exists(f"/proc/{pid}"), timeout_s=30.0)
    return f"HTTP {answer.status_code}, and is replaced" if ended else "lives on"


def _fills_memory(target: Target) -> str:
    """Let Bob's kernel take twice what it may have; say what became of it, and of Ada's."""
    stage = started(target)
    job_id = stage.kernel_of(BOBS)[0].rpartition(".")[0]
    answer = stage.ask_bobs(how="memory", num_bytes=2 * MEMORY_BYTES)
    if answer.status_code == 200:
        return "it has it"
    if not stage.answers():
        return "Ada is not answered any more"
    events = target.bob.events(job_id=job_id).events
    told = target.becomes(lambda: any("memory" in one.message for one in target.bob.events(job_id=job_id).events), 20.0)
    return "ended for it" if told else f"HTTP {answer.status_code}, {events[-1].message}"


def _dies(target: Target) -> str:
    """Let Bob's kernel end itself five times in a row; say whether Ada is answered and his is back."""
    for _ in range(5):
        stage = started(target)
        stage.ask_bobs(how="end")
    stage = started(target)
    answer = stage.ask_bobs(how="print", text="back")
    return f"HTTP {answer.status_code}" if stage.answers() else "Ada is not answered any more"


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="endpoints", name=name, expected=expected, play=play)


ATTACKS: Final = (
    *(_attack(f"from a kernel: {name}", REFUSED, _inside("serving.py", name)) for name in READING),
    _attack(
        "from a kernel: variables of others",
        "nothing",
        _inside("serving.py", "variables of the gateway, or of another's kernel, in its own memory"),
    ),
    *(
        _attack(f"from a kernel: {act}: {whom}", REFUSED, _inside("processes.py", f"{act}: {who}"))
        for act in ACTS
        for who, whom in WHOSE.items()
    ),
    *(_attack(f"from a kernel: {name}", "nothing", _inside("environment.py", name, _of_memory)) for name in MEMORY),
    *(_attack(f"to the gateway: {name}", REFUSED, _said(f"to the gateway: {name}")) for name in WORDS),
    *(_attack(f"from a kernel: {name}", "cut off", _said(f"from a kernel: {name}")) for name in FRAMES),
    _attack(
        "as many kernels of its own as the gateway takes",
        "17 taken",
        _said("as many kernels of its own as the gateway takes"),
    ),
    *(_attack(f"from a kernel: {name}", "Ada is answered", _flood(name)) for name in FLOODS),
    _attack("from a kernel: answers to another's requests", "her own answer", _lies),
    *(_attack(f"an answer with {name}", seen, _forged(fields, text)) for name, (seen, fields, text) in FORGED.items()),
    _attack("from a kernel: more memory than its endpoint has", "ended for it", _fills_memory),
    _attack("from a kernel: an end of its own, five times", "HTTP 200", _dies),
    _attack("from a kernel: computing without end", "HTTP 504, and is replaced", _endless),
    _attack("from a kernel: no heed of its end", "has ended", _deaf),
    *(
        _attack(f"from a kernel: {name} that outlives its endpoint", "has ended", _outlives(name, number))
        for number, name in enumerate(WAYS, start=1)
    ),
)
