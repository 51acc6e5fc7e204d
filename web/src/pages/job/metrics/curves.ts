/** Curves of metrics: buckets of a series as points over steps, time or epochs, smoothed, and several on one axis. */
import type { Schemas } from "../../../api/client";

export type Bucket = Schemas["Bucket"];
export type Axis = "step" | "time" | "epoch";

export interface Curve {
  x: number[];
  /** Means of the buckets; null where nothing was a number. */
  mean: (number | null)[];
  lowest: (number | null)[];
  highest: (number | null)[];
  /** Whether some bucket stands for several points. */
  isMean: boolean;
}

/** What tells where a step lies on an axis. */
export interface Scale {
  axis: Axis;
  /** Seconds since the epoch from which time counts; null: time as it is. */
  startedAt: number | null;
  /** Steps of an epoch; null: not known. */
  stepsPerEpoch: number | null;
}

/** The points of a series in the order of the axis. */
export function curveOf(buckets: readonly Bucket[], scale: Scale): Curve {
  const curve: Curve = { x: [], mean: [], lowest: [], highest: [], isMean: false };
  const placed = buckets.map((bucket) => ({ bucket, x: placeOf(bucket, scale) }));
  if (scale.axis === "time") placed.sort((one, other) => one.x - other.x);
  for (const { bucket, x } of placed) {
    if (x === curve.x.at(-1)) continue;
    curve.x.push(x);
    curve.mean.push(bucket.num_values > 0 ? bucket.total / bucket.num_values : null);
    curve.lowest.push(bucket.lowest);
    curve.highest.push(bucket.highest);
    if (bucket.num_points > 1) curve.isMean = true;
  }
  return curve;
}

function placeOf(bucket: Bucket, scale: Scale): number {
  if (scale.axis === "time") return scale.startedAt === null ? bucket.at : Math.max(0, bucket.at - scale.startedAt);
  if (scale.axis === "epoch")
    return scale.stepsPerEpoch === null ? bucket.epoch : bucket.last_step / scale.stepsPerEpoch;
  return bucket.last_step;
}

/**
 * Smooth values by a moving mean that forgets exponentially, corrected for its start: the first value is itself.
 *
 * @param weight how much of the past stays, from 0 (nothing is smoothed) to less than 1
 */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  const kept = Math.min(weight, 0.999);
  let mean = 0;
  let sum = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    mean = kept * mean + (1 - kept) * value;
    sum = kept * sum + (1 - kept);
    return mean / sum;
  });
}

/** Several lists of values on one axis: where one has nothing, and others have, it is undefined. */
export function aligned(lists: readonly { x: readonly number[]; values: readonly (number | null)[] }[]): {
  x: number[];
  values: (number | null | undefined)[][];
} {
  const [first, ...others] = lists;
  if (first === undefined) return { x: [], values: [] };
  if (others.every((list) => list.x === first.x)) {
    return { x: [...first.x], values: lists.map((list) => [...list.values]) };
  }
  const x = [...new Set(lists.flatMap((list) => [...list.x]))].sort((one, other) => one - other);
  const place = new Map(x.map((value, index) => [value, index]));
  const values = lists.map((list) => {
    const row = new Array<number | null | undefined>(x.length).fill(undefined);
    list.x.forEach((at, index) => {
      const where = place.get(at);
      if (where !== undefined) row[where] = list.values[index] ?? null;
    });
    return row;
  });
  return { x, values };
}

/** The steps between which something lies that was dragged over: those of the buckets at its ends. */
export function stepsBetween(
  buckets: readonly Bucket[],
  scale: Scale,
  [from, to]: readonly [number, number],
): readonly [number, number] | null {
  const inside = buckets.filter((bucket) => {
    const x = placeOf(bucket, scale);
    return x >= from && x <= to;
  });
  const first = inside[0];
  const last = inside.at(-1);
  return first === undefined || last === undefined || inside.length < 2 ? null : [first.first_step, last.last_step];
}

/** So many jobs are told apart by their colours. */
export const MOST_JOBS = 8;

/** Ids of jobs as people type them: `7, job-8`. */
export function jobsOf(typed: string | null, most = MOST_JOBS): string[] {
  const ids = (typed ?? "")
    .split(/[\s,]+/)
    .map((word) => (/^\d{1,18}$/.test(word) ? `job-${word}` : word))
    .filter((word) => /^job-[1-9]\d{0,17}$/.test(word));
  return [...new Set(ids)].slice(0, most);
}

/** Two steps from the address, `100-500`; null: all. */
export function zoomOf(typed: string | null): readonly [number, number] | null {
  const found = /^(\d{1,10})-(\d{1,10})$/.exec(typed ?? "");
  if (found === null) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to && to <= 2 ** 31 - 1 ? [from, to] : null;
}
