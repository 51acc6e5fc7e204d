/** The part of time that a chart shows: the last so many seconds, live; or from one instant to another. */

export type TimeWindow = { live: true; length: number } | { live: false; from: number; until: number };

/** What of a chart says how far back its record goes. */
interface Recorded {
  from: number;
  now: number;
  gaps: readonly { from: number; until: number }[];
}

export const PRESETS = [
  { seconds: 900, name: "15 m" },
  { seconds: 3600, name: "1 h" },
  { seconds: 21_600, name: "6 h" },
  { seconds: 86_400, name: "1 d" },
  { seconds: 604_800, name: "7 d" },
] as const;

export const DEFAULT_LENGTH = 3600;
const MIN_LENGTH = 10;
const MAX_LENGTH = 400 * 86_400;

/**
 * How long a live window waits after a change before it is asked for again: half a bucket, within which nothing would be
 * seen to move. A week costs the server a hundred times what a quarter of an hour does.
 */
export function refreshMs(length: number, buckets: number): number {
  return Math.min(5000, Math.max(1000, (500 * length) / buckets));
}

/** What an address says: `from=-3600`, or `from=1790000000&until=1790000600`. What is neither is the usual window. */
export function windowOf(from: string | null, until: string | null, usual: number = DEFAULT_LENGTH): TimeWindow {
  const start = from === null ? Number.NaN : Number(from);
  const end = until === null ? Number.NaN : Number(until);
  if (start > 0 && end > start) return { live: false, from: start, until: end };
  const length = start < 0 ? Math.min(MAX_LENGTH, Math.max(MIN_LENGTH, -start)) : usual;
  return { live: true, length };
}

/** What an address says of a window. */
export function addressOfWindow(window: TimeWindow): { from: string | null; until: string | null } {
  if (!window.live) return { from: String(round(window.from)), until: String(round(window.until)) };
  return { from: String(-window.length), until: null };
}

/** The last hour; where nothing was recorded but within its last quarter, that quarter. */
export function usualLength(chart: Recorded): number {
  const [gap] = chart.gaps;
  const isYoung = gap !== undefined && gap.from <= chart.from && gap.until > chart.now - PRESETS[0].seconds;
  return isYoung ? PRESETS[0].seconds : DEFAULT_LENGTH;
}

export function boundsOf(window: TimeWindow, now: number): readonly [number, number] {
  return window.live ? [now - window.length, now] : [window.from, window.until];
}

/** Look at more (`factor` above 1) or less; a live window stays live. */
export function zoomed(window: TimeWindow, factor: number, now: number): TimeWindow {
  const clamp = (length: number) => Math.min(MAX_LENGTH, Math.max(MIN_LENGTH, Math.round(length)));
  if (window.live) return { live: true, length: clamp(window.length * factor) };
  const middle = (window.from + window.until) / 2;
  const half = clamp((window.until - window.from) * factor) / 2;
  return windowOrLive(middle - half, middle + half, now);
}

/** Move by a share of the window: back below zero, forth above; live again where it would reach the present. */
export function panned(window: TimeWindow, share: number, now: number): TimeWindow {
  const [from, until] = boundsOf(window, now);
  const by = (until - from) * share;
  return windowOrLive(from + by, until + by, now);
}

/** Stand still at what is shown. */
export function paused(window: TimeWindow, now: number): TimeWindow {
  const [from, until] = boundsOf(window, now);
  return { live: false, from, until };
}

function windowOrLive(from: number, until: number, now: number): TimeWindow {
  if (until >= now) return { live: true, length: Math.max(MIN_LENGTH, Math.round(until - from)) };
  return { live: false, from, until };
}

function round(at: number): number {
  return Math.round(at * 1000) / 1000;
}
