"""What a task could not tell its server, in a file of its LOG_DIR: the server that comes back takes it with the exit.

The file is one line that says whose it is, then a line for each message, as the frame that would have gone over the
link. Example:

    {"task":"job-1.1"}
    {"number":41,"generation":1,"progress":{…},"points":[…],"kind":"report"}
    {"number":42,"step":400,"digest":"","progress":null,"kind":"finished"}

Any script can write such a file. So it says nothing that a link could not say, of its own task alone, and it is taken
whole or not at all. It opens nothing.
"""

import json
from collections.abc import Iterable
from typing import Final

from pliant.api.link import MAX_FRAME_BYTES, decode_from_task, encode, number_of
from pliant.core.errors import InvalidInput
from pliant.core.job import TaskId
from pliant.core.link import FromTask, Hello, Note, Pulse
from pliant.core.ports import MAX_UNSENT_BYTES

MAX_MESSAGES: Final = 2000
_ROOM: Final = 1024
"""Bytes for the first line, and for a note of what had no room."""


def pack(task_id: TaskId, messages: Iterable[tuple[int, FromTask]]) -> tuple[bytes, bool]:
    """Return the content of a file with these messages and their numbers, oldest first; and whether all are in it.

    Those that have no room are the oldest, and a note says how many. It has the number of the newest of them.
    """
    frames = [(number, encode(message, number).encode()) for number, message in messages]
    room, kept = MAX_UNSENT_BYTES - _ROOM, len(frames)
    for _, frame in reversed(frames[-MAX_MESSAGES + 1 :]):
        room -= len(frame) + 1
        if room < 0 or len(frame) > MAX_FRAME_BYTES:
            break
        kept -= 1
    lines = [json.dumps({"task": task_id}).encode()]
    if kept > 0:
        text = f"the server was away for long: the {kept} oldest messages of {task_id} that it had not stored are lost"
        lines.append(encode(Note(message=text), frames[kept - 1][0]).encode())
    lines += [frame for _, frame in frames[kept:]]
    return b"".join(line + b"\n" for line in lines), kept == 0


def unpack(content: str, task_id: TaskId) -> tuple[tuple[int, FromTask], ...]:
    """Return the messages in the content of a task's file, with their numbers, in the order in which they were said.

    Raises:
        InvalidInput: it is no such file, or another task's.
    """
    first, *frames = content.split("\n")
    if first != json.dumps({"task": task_id}):
        raise InvalidInput.at("", f"the file does not begin as one of {task_id} does")
    if not frames or frames.pop():
        raise InvalidInput.at("", "its last line has no end")
    if len(frames) > MAX_MESSAGES:
        raise InvalidInput.at("", f"it holds {len(frames)} messages; at most {MAX_MESSAGES} are taken")
    messages: list[tuple[int, FromTask]] = []
    for frame in frames:
        message, number = _decode(frame)
        if number <= (messages[-1][0] if messages else 0):
            raise InvalidInput.at("number", f"message {number} does not follow what stands before it")
        messages.append((number, message))
    return tuple(messages)


def _decode(frame: str) -> tuple[FromTask, int]:
    if len(frame) > MAX_FRAME_BYTES:
        raise InvalidInput.at("", f"a message of {len(frame)} bytes; at most {MAX_FRAME_BYTES} are taken")
    message = decode_from_task(frame)
    if isinstance(message, Hello | Pulse):
        raise InvalidInput.at("kind", f"{message.kind!r} is said over a link alone")
    return message, number_of(frame)
