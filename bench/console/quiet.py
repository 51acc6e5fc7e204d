"""The parts in which no job runs: a chart of a busy week, drawn in the browser and made by the server; a long table."""

import statistics
import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
from playwright.sync_api import Browser, Page, Route

from bench._report import Claim, spread
from bench.console.browser import FRAMES, REDRAWS, SIZE, STEPS, MainThread, log_on, new_context, settle, wait_here
from bench.console.found import Found, at_least, at_most, frames_per_s
from bench.console.place import Place, new_database, postgres_url, served
from bench.console.plain import ROW_PX, plain
from bench.console.planted import NUM_CHANGES, NUM_CHANGING, NUM_JOBS, WEEK_S

DRAW_LIMIT_MS = 100.0
FRAMES_LIMIT = 50.0
FRAME_MS = 1000 / FRAMES_LIMIT
WEEK_LIMIT_MS = 150.0
NUM_BUCKETS = 5000
MANY_S = 599_000
"""Seconds back from now: as many buckets of two minutes as there may be, nearly."""
NUM_CALLS = 20
LOOK_S = 20.0
NEWS_EVERY_S = 2.0
NUM_STEPS = 100
SCROLL_PX = 18_000
"""Five hundred rows."""
SPEEDS = {"wheel": 3_000, "fling": 20_000}
"""Pixels a second."""
PLAIN_SHARE = 0.9


def drawn(place: Place, started: Browser) -> Found:
    """Let the real page show 5,000 buckets of 20 jobs, live, and count what its main thread needs for it."""
    context = new_context(started, log_on(started, place.logon_link()))
    page = context.new_page()
    page.route("**/v1/slots/chart?*", _ask_for_many)
    place.let_one_wait()
    with page.expect_response(lambda response: "/v1/slots/chart?" in response.url) as answered:
        page.goto(f"{place.url}/?from=-{MANY_S}")
    settle(page)
    answer = answered.value.json()
    page.locator(".u-wrap canvas").wait_for()
    answers: list[str] = []
    page.on("response", lambda response: answers.append(response.url) if "/v1/slots/chart?" in response.url else None)
    wait_here(page, 3)
    page.evaluate(REDRAWS)
    clock = MainThread(page.context.new_cdp_session(page))
    wait_here(page, LOOK_S)
    by_clock, num_drawn = clock.spent(), page.evaluate("window.benchRedraws")
    answers.clear()
    until = time.monotonic() + LOOK_S
    while time.monotonic() < until:
        place.stir(len(answers) + 1)
        wait_here(page, NEWS_EVERY_S)
    by_news, num_answers = clock.spent(), len(answers)
    context.close()
    each_ms = 1000 * by_clock.main_s / num_drawn
    ticks_ms = each_ms * LOOK_S  # the clock goes on, once a second, beside the news
    whole_ms = (1000 * by_news.main_s - ticks_ms) / num_answers
    buckets, layers = len(answer["times"]), len(answer["keys"])
    shown = f"{buckets:,} buckets of {layers} jobs"
    return Found(
        title="A large chart in the browser",
        columns=("what the page does", "processor time of its main thread, ms"),
        rows=(
            (f"{shown}, drawn again as the clock moves, with all else that a second brings", f"{each_ms:.1f}"),
            ("beyond that, for an event: answers are asked for again, read, stacked and drawn", f"{whole_ms:.1f}"),
        ),
        claims=(
            Claim(
                text=f"the chart has {NUM_BUCKETS:,} buckets, but for a few, of 20 jobs",
                found=shown,
                holds=NUM_BUCKETS - 10 <= buckets <= NUM_BUCKETS and layers == NUM_CHANGING,
            ),
            at_most(f"{shown} are drawn in {DRAW_LIMIT_MS:.0f} ms", each_ms, DRAW_LIMIT_MS, "ms"),
            at_most(
                f"a new answer is read, stacked and drawn in {DRAW_LIMIT_MS:.0f} ms", whole_ms, DRAW_LIMIT_MS, "ms"
            ),
        ),
    )


def _ask_for_many(route: Route) -> None:
    """Ask the server for more buckets than the page would; it draws what it gets."""
    parts = urlsplit(route.request.url)
    query = dict(parse_qsl(parts.query)) | {"max_buckets": str(NUM_BUCKETS)}
    route.continue_(url=urlunsplit(parts._replace(query=urlencode(query))))


def scrolled(place: Place, started: Browser, rounds: int) -> Found:
    """Scroll through the table of all jobs as a wheel does, and faster, and through a plain page by the same gesture.

    Count the frames of the main thread, and what it needs for one in which the table moves as far as in 1/50 s.
    """
    context = new_context(started, log_on(started, place.logon_link()))
    page, still = context.new_page(), context.new_page()
    still.set_content(plain((SCROLL_PX + SIZE[1]) // ROW_PX))
    page.goto(f"{place.url}/jobs")
    settle(page)
    rows, claims = [], []
    for name, speed in SPEEDS.items():
        needed = [_needed_ms(page, speed if number % 2 == 0 else -speed) for number in range(rounds)]
        seen: dict[Page, list[tuple[float, float]]] = {page: [], still: []}
        for number in range(rounds):
            for one, measured in seen.items():  # in turns: what else the machine does is the same for both
                measured.append(_scroll(one, -speed if number % 2 == 0 else speed))
        frames, holes = zip(*seen[page], strict=True)
        most, _ = zip(*seen[still], strict=True)
        ratios = [one / other for one, other in zip(frames, most, strict=True)]
        cells = (spread(frames), spread(most), spread(ratios, 2), spread(needed), spread(holes))
        rows.append((f"{name}, {speed:,} pixels/s", *cells))
        limit = min(FRAMES_LIMIT, PLAIN_SHARE * statistics.median(most))
        text = (
            f"the table of {NUM_JOBS:,} jobs scrolls with {FRAMES_LIMIT:.0f} frames/s, "
            f"or {PLAIN_SHARE:g} of a plain page's where that has fewer, {name}"
        )
        claims.append(at_least(text, statistics.median(frames), limit, "frames/s"))
        text = f"a frame of that needs {FRAME_MS:.0f} ms of the main thread, {name}"
        claims.append(at_most(text, statistics.median(needed), FRAME_MS, "ms"))
    context.close()
    return Found(
        title=f"The table of {NUM_JOBS:,} jobs",
        columns=(
            "scrolled by",
            "frames/s",
            "of a plain page, frames/s",
            "ratio in the same turn",
            "processor time of a frame, ms",
            "frames with a row not there yet, %",
        ),
        rows=tuple(rows),
        claims=tuple(claims),
    )


def _needed_ms(page: Page, speed: int) -> float:
    """Move the table frame by frame; return the processor time that the main thread needs for each, milliseconds."""
    page.bring_to_front()  # a page behind another one has no frames
    session = page.context.new_cdp_session(page)
    clock = MainThread(session)
    page.evaluate(STEPS, [NUM_STEPS, speed / FRAMES_LIMIT])
    spent = clock.spent()
    session.detach()
    return 1000 * spent.main_s / NUM_STEPS


def _scroll(page: Page, speed: int) -> tuple[float, float]:
    """Scroll down (a negative speed) or up; return frames per second, and in how many a row was not there yet, %."""
    page.bring_to_front()
    box = page.locator("section[tabindex='0']").bounding_box()
    if box is None:
        raise RuntimeError("no table is shown")
    session = page.context.new_cdp_session(page)
    page.evaluate(FRAMES)
    session.send(
        "Input.synthesizeScrollGesture",
        {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + box["height"] / 2,
            "yDistance": SCROLL_PX if speed > 0 else -SCROLL_PX,
            "speed": abs(speed),
            "gestureSourceType": "mouse",
        },
    )
    seen: dict[str, Any] = page.evaluate(
        "(cancelAnimationFrame(window.benchFrames.next), {times: benchFrames.times, holes: benchFrames.holes})"
    )
    session.detach()
    times = seen["times"]
    return frames_per_s(times), 100 * seen["holes"] / len(times)


def week(place: Place, without_postgres: bool) -> Found:
    """Ask for the week's chart as the page does; count the server's processor time, over both databases."""
    measured = {"SQLite": _asked(place)}
    server = None if without_postgres else postgres_url()
    if server is not None:
        with new_database(server) as database, served(database) as other:
            measured["PostgreSQL"] = _asked(other)
    rows, claims = [], []
    for name in ("SQLite", "PostgreSQL"):
        text = f"a chart of a week with {NUM_CHANGES:,} changes, {name}: {WEEK_LIMIT_MS:.0f} ms"
        if name not in measured:
            claims.append(Claim(text=text, found="no server answers", holds=None))
            continue
        processor_ms, wall_ms = measured[name]
        rows.append((name, f"{processor_ms:.0f}", spread(wall_ms, 0)))
        claims.append(at_most(text, processor_ms, WEEK_LIMIT_MS, "ms", 0))
    return Found(
        title="The server makes a large chart",
        columns=("database", "processor time of the server, ms", "until the answer was there, ms"),
        rows=tuple(rows),
        claims=tuple(claims),
    )


def _asked(place: Place) -> tuple[float, list[float]]:
    """Return the processor time of a call, and how long each took, milliseconds."""
    query: dict[str, str | float] = {"by": "job", "from": -WEEK_S, "max_buckets": 1200}
    wall_ms = []
    with httpx.Client(base_url=f"{place.url}/v1", headers=place.headers, timeout=60) as client:
        ask = partial(client.get, "/slots/chart", params=query)
        ask().raise_for_status()
        before = place.processor_s()
        for _ in range(NUM_CALLS):
            began = time.perf_counter()
            ask().raise_for_status()
            wall_ms.append(1000 * (time.perf_counter() - began))
        return 1000 * (place.processor_s() - before) / NUM_CALLS, wall_ms
