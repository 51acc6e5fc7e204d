"""How a `checkpoint-N` of the Trainer comes into its place: written beside it, and moved there once it is whole.

A leader that is killed meanwhile leaves a hidden folder, and no `checkpoint-N`. Who leads then still has the model of
that step, and writes it: so the best model is there at the end, and is never half of one.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

_DRAFT = ".saving-"


def checkpoint_folder(output_dir: str, step: int) -> str:
    """Return the folder of the Trainer's checkpoint after so many steps."""
    return os.path.join(output_dir, f"{PREFIX_CHECKPOINT_DIR}-{step}")


@contextmanager
def draft_in(output_dir: str) -> Iterator[str]:
    """Yield a folder to write in that no other task writes in, and remove it with what is left in it."""
    os.makedirs(output_dir, exist_ok=True)
    draft = tempfile.mkdtemp(prefix=_DRAFT, dir=output_dir)
    try:
        with _locked(draft):
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(folder: str) -> Iterator[bool]:
    """Lock a folder if nobody else has; a process that was killed has not. Yield whether it is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody has it, or this disk locks no folders
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def put_in_place(folder: str, place: str) -> None:
    """Move a whole folder to its place, instead of what an earlier attempt at the same step has left there.

    A task that leaves and the one that leads after it may both come here: then either one's folder stays.

    Raises:
        OSError: the disk does not do it.
    """
    with suppress(FileNotFoundError):
        os.rename(place, f"{folder}.before")
    try:
        os.rename(folder, place)
    except OSError:
        if not os.path.isdir(place):
            raise


def remove_drafts(output_dir: str) -> None:
    """Remove what leaders that were killed have left; a task that leaves may still be writing."""
    for name in os.listdir(output_dir) if os.path.isdir(output_dir) else ():
        if name.startswith(_DRAFT):
            with suppress(FileNotFoundError), _locked(draft := os.path.join(output_dir, name)) as is_left:
                if is_left:
                    shutil.rmtree(draft, ignore_errors=True)
