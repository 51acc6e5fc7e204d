"""The CIFAR-10 Python batches (https://www.cs.toronto.edu/~kriz/cifar.html), read without running what is in them.

A pickle is a program. These are read by an interpreter that knows the operations that such a file needs and no other,
and that can call three things: stand-ins for a numpy array of bytes, for its type, and for text turned into bytes.
Numpy itself is never called.
"""

import io
import pickle
import pickletools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pliant.core.errors import InvalidInput

TRAINING: Final = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST: Final = "test_batch"
META: Final = "batches.meta"
SIDE: Final = 32
"""Pixels."""
IMAGE_BYTES: Final = 3 * SIDE * SIDE
"""All of red, then of green, then of blue, row by row."""

_MAX_FILE_BYTES: Final = 256 << 20
_MAX_LABELS: Final = 1000
_OPERATIONS: Final = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "DICT", "LIST", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("APPEND", "APPENDS", "SETITEM", "SETITEMS", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
        *("GET", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
    )
)
_BROKEN: Final = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
)
_PUTS: Final = ("PUT", "BINPUT", "LONG_BINPUT")


class _ArrayType:
    """Stands for the class `numpy.ndarray`, which is only ever named."""

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("an array that was not made as numpy makes it")


class _ByteType:
    """Stands for `numpy.dtype`; only that of unsigned bytes can be made."""

    def __init__(self, code: object, *_: object) -> None:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError("an array of something else than bytes")

    def __setstate__(self, state: object) -> None:
        """Byte order and fields, which bytes have none of."""


class Pixels:
    """Stands for an array of bytes with two dimensions."""

    def __init__(self, *_: object) -> None:
        self.num_rows = 0
        self.num_columns = 0
        self.content = b""

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), (int(rows), int(columns)), _ByteType(), False | 0, bytes(content)):
                if rows < 0 or columns < 0 or rows * columns != len(content):
                    raise pickle.UnpicklingError(f"an array of {rows} × {columns} in {len(content)} bytes")
                self.num_rows, self.num_columns, self.content = rows, columns, content
            case _:
                raise pickle.UnpicklingError("an array that is not one of bytes in rows and columns")


class _Encoded:
    """Stands for `_codecs.encode`, by which newer Pythons write bytes for older ones.

    It is a class because nothing can be built upon a class that says how.
    """

    def __new__(cls, text: object, encoding: object) -> bytes:  # type: ignore[misc]
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError("text that is not turned into bytes one by one")
        return text.encode("latin1")

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("bytes that were not made as Python makes them")


_KNOWN: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("numpy.core.multiarray", "_reconstruct"): Pixels,
    ("numpy._core.multiarray", "_reconstruct"): Pixels,
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _ByteType,
    ("_codecs", "encode"): _Encoded,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        known = _KNOWN.get((module, name))
        if known is None:
            raise pickle.UnpicklingError(f"it calls {module[:80]}.{name[:80]}, which no batch of images needs")
        return known

    def persistent_load(self, identity: object) -> Any:  # noqa: ARG002 (the library's signature)
        raise pickle.UnpicklingError("it refers to something outside itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Images and what they show."""

    pixels: bytes
    labels: tuple[int, ...]

    def image(self, number: int) -> bytes:
        """Return the bytes of one image."""
        return self.pixels[number * IMAGE_BYTES : (number + 1) * IMAGE_BYTES]


def find(folder: Path) -> Path | None:
    """Return the folder with the batches: this one, or the one that is in it; None if there are none."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    for place in (folder, *inside):
        if (place / META).is_file() and (place / TRAINING[0]).is_file():
            return place
    return None


def read_labels(folder: Path) -> tuple[str, ...]:
    """Return what the numbers stand for.

    Raises:
        InvalidInput: the file is not what it should be.
    """
    names = read(folder / META).get("label_names")
    if not isinstance(names, list) or not 0 < len(names) <= _MAX_LABELS:
        raise _refusal(META, "has no list `label_names`")
    labels = tuple(_text(name) for name in names)
    for label in labels:
        if not label or label in (".", "..") or "/" in label or not label.isprintable() or len(label) > 100:
            raise _refusal(META, f"has a label that cannot be a folder's name: {label!r:.80}")
    if len(set(labels)) < len(labels):
        raise _refusal(META, "has a label twice")
    return labels


def read_batch(path: Path, num_labels: int) -> Batch:
    """Return the images of a batch.

    Raises:
        InvalidInput: the file is not what it should be.
    """
    found = read(path)
    pixels, labels = found.get("data"), found.get("labels")
    if not isinstance(pixels, Pixels) or pixels.num_columns != IMAGE_BYTES:
        raise _refusal(path.name, f"has no array `data` of bytes with {IMAGE_BYTES} columns")
    if not isinstance(labels, list) or len(labels) != pixels.num_rows:
        raise _refusal(path.name, f"has no list `labels` with one for each of {pixels.num_rows} images")
    for label in labels:
        if type(label) is not int or not 0 <= label < num_labels:
            raise _refusal(path.name, f"has a label that is not one of 0 to {num_labels - 1}")
    return Batch(pixels=pixels.content, labels=tuple(labels))


def read(path: Path) -> dict[str, object]:
    """Return the dictionary in a file, without trusting it.

    Raises:
        InvalidInput: it holds anything else than a batch may.
    """
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise _refusal(path.name, f"is larger than {_MAX_FILE_BYTES >> 20} MiB")
    content = path.read_bytes()
    try:
        _check_operations(content)
        found = _Reader(io.BytesIO(content), encoding="bytes").load()
    except _BROKEN as error:
        raise _refusal(path.name, f"cannot be read ({error})") from error
    except (MemoryError, RecursionError) as error:
        raise _refusal(path.name, f"cannot be read ({type(error).__name__})") from error
    if not isinstance(found, dict):
        raise _refusal(path.name, "is not a dictionary")
    return {_text(key): value for key, value in found.items()}


def _check_operations(content: bytes) -> None:
    """Look at every operation before any of them is carried out.

    Raises:
        UnpicklingError: one is not needed by such a file, or numbers something so high that it would fill the memory.
    """
    for operation, argument, _ in _operations(content):
        if operation not in _OPERATIONS:
            raise pickle.UnpicklingError(f"the operation {operation} is not one that a batch of images needs")
        if operation in _PUTS and not (isinstance(argument, int) and 0 <= argument <= len(content)):
            raise pickle.UnpicklingError(f"the operation {operation} with {argument!r:.40}")


def _operations(content: bytes) -> Iterator[tuple[str, object, int | None]]:
    for operation, argument, position in pickletools.genops(content):
        yield operation.name, argument, position


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else f"a {type(value).__name__}"


def _refusal(name: str, what: str) -> InvalidInput:
    message = f"{name} {what}; give the CIFAR-10 batches for Python as they are published"
    return InvalidInput.at("source", message)
