/**
 * How V parts of a global batch divide over n workers, and which V divides evenly at more sizes. A step takes as long
 * as the worker with most parts, ceil(V / n): of 8 parts 3 workers have 3, 3 and 2, which is 8 / (3 · 3) = 89 % of the
 * ideal speed. The server's own is `pliant.policy.elastic.virtual_workers`.
 */

/** A size that uses less than this of its workers divides badly. */
export const GOOD = 0.9;
const MOST = 4096;
/** No worker is given more parts than this by advice: every part costs time of its own. */
const FINEST = 3;

export interface Size {
  workers: number;
  /** Of the ideal speed, 0 to 1. */
  efficiency: number;
  /** The fewest and the most parts that a worker has. */
  parts: readonly [number, number];
}

/** How V parts divide over 1 to `max` workers; nothing where there are fewer parts than workers. */
export function sizesOf(parts: number, max: number): Size[] {
  return Array.from({ length: Math.max(0, Math.min(max, parts, MOST)) }, (_, index) => {
    const workers = index + 1;
    const most = Math.ceil(parts / workers);
    return { workers, efficiency: parts / (workers * most), parts: [Math.floor(parts / workers), most] };
  });
}

export function evenSizes(parts: number, min: number, max: number): number[] {
  const found: number[] = [];
  for (let n = min; n <= Math.min(max, parts); n += 1) if (parts % n === 0) found.push(n);
  return found;
}

export interface Advice {
  parts: number;
  /** The sizes from the minimum to the maximum at which every worker has as many parts. */
  even: readonly number[];
}

/** The smallest V that keeps the most sizes even, if that are more than V does and V divides badly; null if none is better. */
export function advise(parts: number, min: number, max: number): Advice | null {
  const sizes = sizesOf(parts, max).filter((size) => size.workers >= min);
  if (sizes.length === 0 || sizes.every((size) => size.efficiency >= GOOD)) return null;
  let best: Advice = { parts, even: evenSizes(parts, min, max) };
  for (let other = max; other <= Math.min(MOST, max * FINEST); other += 1) {
    const even = evenSizes(other, min, max);
    if (even.length > best.even.length) best = { parts: other, even };
  }
  return best.parts === parts ? null : best;
}
