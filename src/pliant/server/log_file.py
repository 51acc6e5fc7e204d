"""Reads log files while tasks write them: a piece of one, and where its last lines begin. It follows no links."""

import os
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 16


def read_at(path: Path, offset: int, limit: int = CHUNK) -> bytes:
    """Return at most `limit` bytes at `offset`, 64 KiB at most; empty at the end."""
    with _open(path) as file:
        file.seek(offset)
        return file.read(min(limit, CHUNK))


def size_of(path: Path) -> int:
    """Return the length of a file."""
    with _open(path) as file:
        return os.fstat(file.fileno()).st_size


def find_tail(path: Path, num_lines: int) -> int:
    """Return where the last `num_lines` lines begin; a last line without its end counts as one."""
    with _open(path) as file:
        end = os.fstat(file.fileno()).st_size
        if num_lines == 0:
            return end
        block_end, missing = end, num_lines
        while block_end > 0:
            start = max(0, block_end - CHUNK)
            file.seek(start)
            block = file.read(block_end - start)
            limit = len(block) - 1 if block_end == end and block.endswith(b"\n") else len(block)
            while (found := block.rfind(b"\n", 0, limit)) >= 0:
                missing -= 1
                if missing == 0:
                    return start + found + 1
                limit = found
            block_end = start
        return 0


def _open(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
