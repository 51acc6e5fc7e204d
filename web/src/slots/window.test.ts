import { expect, test } from "vitest";
import { addressOfWindow, boundsOf, panned, paused, refreshMs, usualLength, windowOf, zoomed } from "./window";

const NOW = 1_790_000_000;

test("an address says a window, and what it does not say is the last hour", () => {
  expect(windowOf(null, null)).toEqual({ live: true, length: 3600 });
  expect(windowOf("-900", null)).toEqual({ live: true, length: 900 });
  expect(windowOf("100", "200")).toEqual({ live: false, from: 100, until: 200 });
  expect(windowOf("200", "100")).toEqual({ live: true, length: 3600 });
  expect(windowOf("nonsense", "100")).toEqual({ live: true, length: 3600 });
  expect(windowOf("-1e99", null)).toEqual({ live: true, length: 400 * 86_400 });
});

test.each([
  { live: true, length: 900 },
  { live: true, length: 3600 },
  { live: false, from: 100.5, until: 200 },
] as const)("a window comes back from its address: %o", (window) => {
  const { from, until } = addressOfWindow(window);
  expect(windowOf(from, until)).toEqual(window);
});

test("a server that has just begun shows its first quarter of an hour, not an hour of nothing", () => {
  const chart = (...gaps: [number, number][]) => ({
    from: NOW - 3600,
    now: NOW,
    gaps: gaps.map(([from, until]) => ({ from: NOW + from, until: NOW + until })),
  });
  expect(usualLength(chart([-3600, -120]))).toBe(900);
  expect(usualLength(chart([-3600, -1200]))).toBe(3600);
  expect(usualLength(chart([-600, -120]))).toBe(3600);
  expect(usualLength(chart())).toBe(3600);
});

test("to pan back stands still, to pan forth into the present is live", () => {
  const back = panned({ live: true, length: 100 }, -0.5, NOW);
  expect(back).toEqual({ live: false, from: NOW - 150, until: NOW - 50 });
  expect(panned(back, 0.5, NOW)).toEqual({ live: true, length: 100 });
});

test("to zoom keeps the middle, and live what is live", () => {
  expect(zoomed({ live: true, length: 100 }, 2, NOW)).toEqual({ live: true, length: 200 });
  expect(zoomed({ live: false, from: 100, until: 200 }, 0.5, NOW)).toEqual({ live: false, from: 125, until: 175 });
  expect(zoomed({ live: true, length: 10 }, 0.1, NOW)).toEqual({ live: true, length: 10 });
});

test("a paused window stays where it is", () => {
  const window = paused({ live: true, length: 60 }, NOW);
  expect(boundsOf(window, NOW + 500)).toEqual([NOW - 60, NOW]);
});

test("a longer window is asked for again less often", () => {
  expect([900, 3600, 604_800].map((length) => refreshMs(length, 1200))).toEqual([1000, 1500, 5000]);
});
