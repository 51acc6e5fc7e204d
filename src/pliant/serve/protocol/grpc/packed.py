"""Repeated numbers in protobuf's wire format, all of them at once."""

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.wire import MAX_VARINT_BYTES


def read_packed(packed: memoryview, field: str) -> NDArray[np.uint64]:
    """Return the varints that follow each other without tags; computed for all of them at once.

    Raises:
        InvalidInput: the last one is cut off, or one has no end.
    """
    raw = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(raw < 0x80) + 1
    if (ends[-1] if ends.size else 0) != raw.size:
        raise InvalidInput.at(field, "the last number is cut off")
    starts = np.concatenate([np.zeros(1, ends.dtype), ends])[:-1]
    sizes = ends - starts
    if sizes.max(initial=0) > MAX_VARINT_BYTES:
        raise InvalidInput.at(field, f"a number has more than {MAX_VARINT_BYTES} bytes")
    values = np.zeros(ends.size, np.uint64)
    for place in range(int(sizes.max(initial=0))):
        has_byte = sizes > place
        values[has_byte] |= (raw[starts[has_byte] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return values
