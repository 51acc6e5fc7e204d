"""What a model says of itself (`ModelMetadata`), with the words of the Open Inference Protocol.

See https://github.com/kserve/open-inference-protocol. Sizes that may differ from request to request are -1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pliant.serve.runner.errors import ModelNotLoaded

DATATYPES: Final = frozenset(
    ["BOOL", "BYTES", "FP16", "BF16", "FP32", "FP64"]
    + [f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
)
_FORM: Final = 'write {"name": "x", "datatype": "FP32", "shape": [-1, 28, 28]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTensor:
    """An input or an output as a model declares it."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMetadata:
    """What a loaded model tells the gateway."""

    platform: str
    inputs: tuple[DeclaredTensor, ...] = ()
    """Empty: it does not say."""
    outputs: tuple[DeclaredTensor, ...] = ()
    max_batch_size: int | None = None
    """It wants no more requests at once; None: as many as the endpoint gives it."""
    decoupled: bool = False
    """It answers in parts whoever takes them: Triton's word."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the header of READY has it."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


def parse_tensors(name: str, given: object) -> tuple[DeclaredTensor, ...]:
    """Return the tensors that an attribute of a model's class declares.

    Raises:
        ModelNotLoaded: it is no list of declarations.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise ModelNotLoaded(f"`{name}` is {given!r:.100}; make it a list: {_FORM}")
    return tuple(_tensor(name, one) for one in given)


def _tensor(field: str, given: object) -> DeclaredTensor:
    if not isinstance(given, Mapping) or set(given) != {"name", "datatype", "shape"}:
        raise ModelNotLoaded(f"`{field}` holds {given!r:.100}; {_FORM}")
    name, datatype, shape = given["name"], given["datatype"], given["shape"]
    if not isinstance(name, str) or datatype not in DATATYPES:
        raise ModelNotLoaded(f"`{field}` holds {given!r:.100}; name is text, datatype one of {sorted(DATATYPES)}")
    if not isinstance(shape, Sequence) or not all(isinstance(size, int) and size >= -1 for size in shape):
        raise ModelNotLoaded(f"`{field}` holds the shape {shape!r:.100}; write whole numbers, -1 for any: [-1, 28, 28]")
    return DeclaredTensor(name=name, datatype=datatype, shape=tuple(shape))


def parse_max_batch_size(given: object) -> int | None:
    """Return the most requests that a model wants at once.

    Raises:
        ModelNotLoaded: it is no number above 0.
    """
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 1):
        return given
    raise ModelNotLoaded(f"`max_batch_size` is {given!r:.100}; give a whole number above 0, or leave it out")
