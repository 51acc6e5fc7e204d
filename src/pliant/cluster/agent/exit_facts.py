"""What a dead task left behind on this node, for its exit: its step, the end of its stderr, whether a model was saved.

And what it could not tell its server. A stranger wrote these files, and may have put anything in their place: they are
read as `pliant.files.untrusted` reads, and of each a few KiB at most, of the messages a few MiB. What cannot be read
counts as not there.
"""

import os
from contextlib import suppress
from pathlib import Path

from pliant.cluster.zygote.records import Record
from pliant.core.ports import MAX_STDERR_BYTES, MAX_UNSENT_BYTES, UNSENT_FILE, ExitFacts
from pliant.files import step_file
from pliant.files.untrusted.opening import is_file, open_file, read_end
from pliant.files.untrusted.path import UntrustedPath


def collect(record: Record, *, out_of_memory: bool) -> ExitFacts:
    """Return what a task left behind whose process is gone."""
    if record.log_dir is None:
        return ExitFacts(out_of_memory=out_of_memory)
    log_dir = Path(record.log_dir)
    result = Path(record.result_dir or log_dir.parent)
    stderr, stderr_at = _read_end(result, log_dir / "stderr", MAX_STDERR_BYTES)
    step, _ = _read_end(result, log_dir / step_file.NAME, step_file.NUM_BYTES + 1)
    messages, unread = _read_unsent(result, log_dir / UNSENT_FILE)
    return ExitFacts(
        step=step_file.unpack(step),
        stderr=stderr.decode("utf-8", "replace"),
        stderr_at=stderr_at if stderr else 0.0,
        unsent=messages,
        unread=unread,
        saved_model=record.model is not None and _is_file(result, Path(record.model)),
        out_of_memory=out_of_memory,
    )


def lacks_pliant(record: Record, exit_code: int | None, facts: ExitFacts) -> str:
    """Return why a start with another interpreter came to nothing, if the reason is that this one has no Pliant."""
    if record.python is None or exit_code != 1:
        return ""
    if "No module named 'pliant'" not in facts.stderr and "No module named pliant" not in facts.stderr:
        return ""
    return f"Pliant is not installed for {record.python}; install it there: {record.python} -m pip install pliant"


def _read_end(result: Path, path: Path, num_bytes: int) -> tuple[bytes, float]:
    """Return the end of a file and when it was last written, seconds since the epoch; nothing and 0 if not there."""
    with suppress(OSError, ValueError):
        content, facts = read_end(_below(result, path), num_bytes)
        return content, facts.st_mtime
    return b"", 0.0


def _read_unsent(result: Path, path: Path) -> tuple[str, str]:
    """Return what stands in a file of messages; or why it was not read, if something is there."""
    try:
        with open_file(_below(result, path)) as file:
            if file.num_bytes > MAX_UNSENT_BYTES:
                return "", f"it has {file.num_bytes:,} bytes; at most {MAX_UNSENT_BYTES:,} are read"
            return file.read_at(0, MAX_UNSENT_BYTES).decode(), ""
    except UnicodeDecodeError:
        return "", "it is no text"
    except (FileNotFoundError, ValueError):
        return "", ""
    except OSError as error:
        return "", error.strerror or str(error)


def _is_file(result: Path, path: Path) -> bool:
    with suppress(ValueError):
        return is_file(_below(result, path))
    return False


def _below(result: Path, path: Path) -> UntrustedPath:
    """Return a file in the folder that a task writes to; the folder above that is ours.

    Raises:
        ValueError: it does not lie in the task's folder.
    """
    return UntrustedPath(result.parent, os.path.join(result.name, path.relative_to(result)))
