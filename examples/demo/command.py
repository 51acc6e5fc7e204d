"""What the commands of all demos do: make a folder for the results, play, say what holds and where everything lies."""

import argparse
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from examples.demo.account import Check
from examples.demo.recording import DemoFailed, Recording, Seen
from examples.demo.screen import Lines, Screen
from pliant.core.errors import PliantError

ROOT = Path(__file__).parents[2]


def make_parser(prog: str, doc: str | None, *, num_epochs: int | None) -> argparse.ArgumentParser:
    """Return a parser of what every demo may be told; without `num_epochs`, they are worked out while it plays."""
    parser = argparse.ArgumentParser(prog=prog, description=doc)
    parser.add_argument("--out", type=Path, default=ROOT / "demo-result", help="folder of the results")
    parser.add_argument("--epochs", type=int, default=num_epochs, help="epochs of each training")
    parser.add_argument("--plain", action="store_true", help="print lines instead of the live picture")
    return parser


def perform(
    options: argparse.Namespace, run: Callable[[Console, Path, bool], Sequence[Check]], results: Sequence[str]
) -> int:
    """Play a demo and return its exit status: 0 only if every claim holds.

    Args:
        options: of `make_parser`.
        run: plays; gets the console, the folder of its results, and whether to show a live picture.
        results: what it leaves in that folder.
    """
    console = Console()
    folder = options.out.resolve() / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    for end in (signal.SIGINT, signal.SIGTERM):  # also when started in the background, where SIGINT is ignored
        signal.signal(end, signal.default_int_handler)
    began_at = time.time()
    try:
        checks = run(console, folder, console.is_terminal and not options.plain)
    except (DemoFailed, PliantError) as error:
        console.print(f"\nThe demo failed: {error}", style="bold red", highlight=False, soft_wrap=True)
        console.print(f"The server's log and its state folder are in {folder}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print(f"\nStopped, and everything shut down. What there is lies in {folder}", soft_wrap=True)
        return 130
    num_broken = sum(not check.holds for check in checks)
    verdict = "Everything holds" if not num_broken else f"{num_broken} of {len(checks)} claims do not hold"
    console.print(
        f"\n{verdict}; it took {time.time() - began_at:.0f} s.", style="bold red" if num_broken else "bold green"
    )
    for name in results:
        console.print(f"  {folder / name}", highlight=False, soft_wrap=True)
    return 1 if num_broken else 0


@contextmanager
def showing(console: Console, recording: Recording, *, live: bool) -> Iterator[Screen | Lines]:
    """Show what is recorded while the block runs."""

    def look() -> Seen:
        return recording.at(time.time())

    view = Screen(console, look) if live else Lines(console, look)
    view.start()
    try:
        yield view
    finally:
        view.stop()
