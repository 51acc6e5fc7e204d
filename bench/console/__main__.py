"""Whether the web console is quick and small where much is in it: Chromium on the real server.

The database holds 10,000 jobs that have ended, and a week in which 20 jobs changed their slots 46,000 times; both are
written through the store beforehand, since nobody waits a week. All else is real: the server, its bundle, its
answers, the browser, and 200 jobs that run, each with a process of its own that sleeps (they are ordinary programs, so
that the cores are there for what is measured). What happens meanwhile is that a job that waits gets another priority.

- `week`: the server's processor time for the chart of that week, as the page asks for it.
- `chart`: the page shows 5,000 buckets of 20 jobs; it is told to ask for so many by changing its request on the way.
  Counted is all that the page's main thread does, so reading, stacking and drawing are in it.
- `table`: the table of all jobs is scrolled by the browser's own gesture; frames are those of the main thread. In turns
  with it a page of plain HTML with as many columns, and no script, which tells what this browser does here at most.
- `load`: Overview is opened by who is logged on, with nothing cached. Live: figures and chart are there, events come,
  nothing is on its way, and that was painted.
- `rest`: twenty consoles, each in a browser profile of its own, so with connections of its own.
- `memory`: what pages hold after garbage was collected, by a line through many samples.

Processor times are by the browser's and the kernel's own count, and say the same on a busy machine; moments and frames
do not. Claims: those of the console's design.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import Browser

from bench._report import finish, head, table, verdicts
from bench.console.browser import browser
from bench.console.busy import at_rest, first_look, memory
from bench.console.found import Found
from bench.console.place import Place, served
from bench.console.quiet import drawn, scrolled, week

QUIET = ("week", "chart", "table")
BUSY = ("load", "rest", "memory")


def measured(given: argparse.Namespace) -> tuple[list[Found], str]:
    """Measure part after part; return what each found, and what is to be said before all of it."""
    quiet, busy = ([part for part in parts if part in given.parts] for parts in (QUIET, BUSY))
    with served() as place, browser() as started:
        said = f"Chromium {started.version}. Writing the database took {place.planted_s:.0f} s."
        found = [_shown(_quiet(part, place, started, given)) for part in quiet]
        if busy:
            said += f" Starting the jobs took {place.start_jobs():.0f} s."
        found += [_shown(_busy(part, place, started, given)) for part in busy]
    return found, said


def _shown(found: Found) -> Found:
    print(found.title, *(" | ".join(row) for row in found.rows), "", sep="\n", flush=True)
    return found


def _quiet(part: str, place: Place, started: Browser, given: argparse.Namespace) -> Found:
    if part == "week":
        return week(place, given.without_postgres)
    return drawn(place, started) if part == "chart" else scrolled(place, started, given.rounds)


def _busy(part: str, place: Place, started: Browser, given: argparse.Namespace) -> Found:
    if part == "load":
        return first_look(place, started, given.rounds)
    return at_rest(place, started) if part == "rest" else memory(place, started, given.minutes)


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--parts", nargs="+", choices=(*QUIET, *BUSY), default=(*QUIET, *BUSY), help="only these")
    parser.add_argument("--minutes", type=float, default=5.0, help="of `memory`; 30 for the claim as it is meant")
    parser.add_argument("--rounds", type=int, default=5, help="how often what is short is measured")
    parser.add_argument("--without-postgres", action="store_true", help="leave PostgreSQL out though it answers")
    given = parser.parse_args()
    found, said = measured(given)
    claims = [claim for part in found for claim in part.claims]
    text = "\n".join(
        (
            head("The web console", f"python -m bench.console {' '.join(sys.argv[1:])}".strip()),
            (__doc__ or "").partition("\n")[2],
            f"{said}\n",
            *(f"## {part.title}\n\n{table(part.columns, *part.rows)}" for part in found),
            verdicts(claims),
        )
    )
    return finish(text, claims, given.out)


if __name__ == "__main__":
    sys.exit(main())
