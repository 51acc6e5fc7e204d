"""The parts in which 200 jobs run: the first look at Overview, twenty consoles at rest, half an hour of news."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from playwright.sync_api import Browser, Page

from bench._report import Claim, spread
from bench.console.browser import (
    WATCH,
    Held,
    MainThread,
    Traffic,
    held,
    log_on,
    new_context,
    settle,
    wait_here,
)
from bench.console.found import Found, at_most, slope
from bench.console.place import NUM_RUNNING, Place

BYTES_LIMIT_KB = 400.0
PAINT_LIMIT_MS = 1000.0
LIVE_LIMIT_MS = 1500.0
NUM_CONSOLES = 20
REST_LIMIT = 5.0
REST_S = 60.0
NEWS_EVERY_S = 0.5
NUM_MARKS = 400
"""More than the chart shows, so that what it keeps is full before it is counted."""
SAMPLE_EVERY_S = 10.0
HALF_HOUR_S = 1800.0
RISE_LIMIT_MB = 1.0
PAGES = {"Overview": "/", "Jobs": "/jobs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One first look."""

    traffic: Traffic
    paint_ms: float
    """The first contentful paint, since the page was asked for."""
    live_ms: float
    """All is there, since the page was asked for."""
    main_ms: float
    """Processor time of the main thread until a second after that."""


def first_look(place: Place, started: Browser, rounds: int) -> Found:
    """Open Overview, logged on, with nothing cached; note bytes and moments."""
    state = log_on(started, place.logon_link())
    looks = [_look(place, started, state) for _ in range(rounds)]
    traffic = looks[-1].traffic
    wrong = _not_as_sent(traffic)
    kb = [look.traffic.whole / 1000 for look in looks]
    paint, live = [look.paint_ms for look in looks], [look.live_ms for look in looks]
    files = {address: size for address, size in traffic.bodies.items() if "/v1/" not in address}
    bundle = sum(files.values()) / 1000
    by_gzip = sum({**traffic.bodies, **_sent(traffic, "gzip")}.values()) / 1000
    middle = statistics.median
    return Found(
        title=f"The first look at Overview, {NUM_RUNNING} jobs running",
        columns=("what", "found"),
        rows=(
            (f"transferred, kB: {len(traffic.bodies)} answers with their heads", spread(kb)),
            (f"of it the bundle, kB: {len(files)} files, packed", f"{bundle:.1f}"),
            ("all bodies where a browser takes gzip alone (plain HTTP from another machine), kB", f"{by_gzip:.1f}"),
            ("first contentful paint, ms", spread(paint, 0)),
            ("live, ms", spread(live, 0)),
            ("processor time of the main thread, ms", spread([look.main_ms for look in looks], 0)),
        ),
        claims=(
            Claim(
                text="bytes that the browser counts are those that the server sends",
                found="; ".join(wrong) or f"{len(files)} files, {bundle:.1f} kB",
                holds=not wrong,
            ),
            at_most(f"{BYTES_LIMIT_KB:.0f} kB at the first look", max(kb), BYTES_LIMIT_KB, "kB"),
            at_most(f"{BYTES_LIMIT_KB:.0f} kB of bodies by gzip", by_gzip, BYTES_LIMIT_KB, "kB"),
            at_most(f"first contentful paint in {PAINT_LIMIT_MS:.0f} ms", middle(paint), PAINT_LIMIT_MS, "ms", 0),
            at_most(f"Overview live in {LIVE_LIMIT_MS:.0f} ms", middle(live), LIVE_LIMIT_MS, "ms", 0),
        ),
    )


def _look(place: Place, started: Browser, state: Any) -> Look:
    context = new_context(started, state)
    page = context.new_page()
    page.add_init_script(WATCH)
    session = context.new_cdp_session(page)
    traffic = Traffic.of(session)
    clock = MainThread(session)
    page.goto(f"{place.url}/")
    settle(page)
    page.locator("[data-connection=live]").wait_for()
    wait_here(page, 1)
    look = Look(
        traffic=traffic,
        paint_ms=_moment(page, "first-contentful-paint"),
        live_ms=_moment(page, "bench live"),
        main_ms=1000 * clock.spent().main_s,
    )
    context.close()
    return look


def _moment(page: Page, name: str) -> float:
    found = page.evaluate(f"performance.getEntriesByName({name!r}).map((entry) => entry.startTime)")
    if not found:
        raise RuntimeError(f"the browser notes no moment {name!r}")
    return float(found[0])


def _not_as_sent(traffic: Traffic) -> list[str]:
    """Return the files of the bundle of which the browser counted other bytes than the server sends packed."""
    sent = _sent(traffic, "gzip, br")
    return [
        f"{name}: {traffic.bodies[name]:.0f} counted, {size} sent"
        for name, size in sent.items()
        if size != traffic.bodies[name]
    ]


def _sent(traffic: Traffic, encoding: str) -> dict[str, int]:
    """Return how many bytes the server sends for each file of the bundle to who takes an encoding, by address."""
    sent = {}
    with httpx.Client(headers={"Accept-Encoding": encoding}) as client:
        for address in traffic.bodies:
            if "/assets/" in address:
                with client.stream("GET", address) as answer:
                    sent[address] = sum(map(len, answer.iter_raw()))
    return sent


def at_rest(place: Place, started: Browser) -> Found:
    """Count the server's processor time while nobody looks, and while twenty consoles do, and nothing happens."""
    alone = _rest(place, None)
    state = log_on(started, place.logon_link())
    contexts = [new_context(started, state) for _ in range(NUM_CONSOLES)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.goto(f"{place.url}/")
        settle(page)
    for page in pages:
        page.locator("[data-connection=live]").wait_for()
    wait_here(pages[-1], 5)
    seen = _rest(place, pages[-1])
    visible = sum(page.evaluate("document.visibilityState") == "visible" for page in pages)
    live = sum(page.locator("[data-connection=live]").count() for page in pages)
    for context in contexts:
        context.close()
    return Found(
        title=f"{NUM_CONSOLES} consoles at rest, {NUM_RUNNING} jobs running",
        columns=("who looks", "processor time of the server, % of a core"),
        rows=(("nobody", f"{alone:.2f}"), (f"{visible} visible pages of Overview, {live} of them live", f"{seen:.2f}")),
        claims=(
            Claim(
                text=f"all {NUM_CONSOLES} are visible and live",
                found=f"{visible} and {live}",
                holds=visible == live == NUM_CONSOLES,
            ),
            at_most(f"{NUM_CONSOLES} consoles cost {REST_LIMIT:.0f} % of a core", seen - alone, REST_LIMIT, "%", 2),
        ),
    )


def _rest(place: Place, page: Page | None) -> float:
    """Return the server's processor time in a minute in which nothing happens, % of a core."""
    before, began = place.processor_s(), time.monotonic()
    if page is None:
        time.sleep(REST_S)
    else:
        wait_here(page, REST_S)
    return 100 * (place.processor_s() - before) / (time.monotonic() - began)


def memory(place: Place, started: Browser, minutes: float) -> Found:
    """Let something happen twice a second, and count what pages hold after garbage was collected."""
    if not place.waiting:
        place.let_one_wait()
    context = new_context(started, log_on(started, place.logon_link()))
    pages = {name: context.new_page() for name in PAGES}
    for name, page in pages.items():
        page.goto(f"{place.url}{PAGES[name]}")
        settle(page)
    for number in range(NUM_MARKS):
        place.stir(number)
    sessions = {name: context.new_cdp_session(page) for name, page in pages.items()}
    samples: dict[str, list[Held]] = {name: [] for name in pages}
    began, number = time.monotonic(), NUM_MARKS
    due = began + SAMPLE_EVERY_S
    while (now := time.monotonic()) < began + 60 * minutes:
        place.stir(number := number + 1)
        if now >= due:
            due += SAMPLE_EVERY_S
            for name, session in sessions.items():
                samples[name].append(held(session, now - began))
        wait_here(pages["Overview"], max(0.0, NEWS_EVERY_S - (time.monotonic() - now)))
    seen = number - NUM_MARKS
    context.close()
    rows = tuple(_held_row(name, found) for name, found in samples.items())
    return Found(
        title=f"Memory of pages over {minutes:g} minutes, {seen:,} changes",
        columns=("page", "first, MB", "last, MB", "grows in 30 minutes, MB", "nodes", "listeners", "documents"),
        rows=rows,
        claims=tuple(_is_flat(name, found) for name, found in samples.items()),
    )


def _held_row(name: str, found: Sequence[Held]) -> tuple[str, ...]:
    rise, error = slope([one.at_s for one in found], [one.heap_mb for one in found]).rise(HALF_HOUR_S)
    first, last = found[0], found[-1]
    return (
        name,
        f"{first.heap_mb:.2f}",
        f"{last.heap_mb:.2f}",
        f"{rise:+.2f} ± {error:.2f}",
        f"{first.nodes} → {last.nodes}",
        f"{first.listeners} → {last.listeners}",
        f"{first.documents} → {last.documents}",
    )


def _is_flat(name: str, found: Sequence[Held]) -> Claim:
    """Judge a page: by the line through its memory it grows by a megabyte in half an hour at most, beyond the noise."""
    rise, error = slope([one.at_s for one in found], [one.heap_mb for one in found]).rise(HALF_HOUR_S)
    return Claim(
        text=f"{name}: no more than {RISE_LIMIT_MB:g} MB in half an hour, beyond the noise",
        found=f"{rise:+.2f} ± {error:.2f} MB",
        holds=rise - error <= RISE_LIMIT_MB,
    )
