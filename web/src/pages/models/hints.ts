/**
 * What the course of a training suggests: to end it, or to take another learning rate; each with the numbers that say so.
 *
 * An epoch counts as better if its value is a thousandth better than the best before it. Example: test losses 0.5, 0.4,
 * 0.31, then six times 0.32 or so: the best was in epoch 3, six epochs ago, so the training can be ended.
 */
import type { Schemas } from "../../api/client";
import { isTested, meanOf } from "./series";

type Series = Schemas["Series"];

export type Hint =
  | { kind: "diverged"; series: string; step: number; rate: number }
  | { kind: "grows"; series: string; best: number; now: number; rate: number }
  | { kind: "stop"; series: string; best: number; epoch: number; since: number }
  | { kind: "overfits"; series: string; best: number; now: number; epoch: number }
  | { kind: "flat"; series: string; epochs: number; rate: number };

/** Epochs without a better value after which to end. */
const PATIENCE = 5;
const BETTER_BY = 1e-3;
/** A loss so many times its best says that steps are too long. */
const TOO_MUCH = 3;
/** A test loss so much above its best, while the training's own falls, says that samples are learnt by heart. */
const ABOVE_BEST = 1.1;

interface Point {
  epoch: number;
  step: number;
  value: number;
}

/** Look at the series of a training that began with this learning rate. */
export function hintsOf(series: readonly Series[], learningRate: number): Hint[] {
  const trained = series.find((one) => one.name === "loss");
  const tested = series.find((one) => isTested(one.name) && /loss$/i.test(one.name));
  const rate = learningRate / 10;
  const broken = trained === undefined ? null : divergenceOf(trained, rate);
  if (broken !== null) return [broken];
  const losses = trained === undefined ? [] : byEpoch(trained);
  const tests = tested === undefined ? [] : byEpoch(tested);
  const found: Hint[] = [];
  const judged = tested !== undefined && tests.length > 0 ? tests : losses;
  const name = judged === tests ? (tested?.name ?? "") : (trained?.name ?? "");
  const best = bestOf(judged);
  const last = judged.at(-1);
  if (best !== null && last !== undefined && last.epoch - best.epoch >= PATIENCE) {
    const falls = (bestOf(losses)?.epoch ?? 0) > best.epoch;
    if (judged === tests && falls && last.value > best.value * ABOVE_BEST) {
      found.push({ kind: "overfits", series: name, best: best.value, now: last.value, epoch: best.epoch });
    } else
      found.push({ kind: "stop", series: name, best: best.value, epoch: best.epoch, since: last.epoch - best.epoch });
    if (!falls && trained !== undefined) {
      found.push({ kind: "flat", series: trained.name, epochs: last.epoch - best.epoch, rate });
    }
  }
  return found;
}

/** A training whose loss is no number any more, or has become much larger than it was. */
function divergenceOf(series: Series, rate: number): Hint | null {
  const last = series.buckets.at(-1);
  if (last === undefined) return null;
  if (last.num_values < last.num_points) {
    const first = series.buckets.find((bucket) => bucket.num_values < bucket.num_points) ?? last;
    return { kind: "diverged", series: series.name, step: first.first_step, rate };
  }
  const now = meanOf(last);
  const before = series.buckets
    .slice(0, -1)
    .map(meanOf)
    .filter((value) => value !== null);
  const best = Math.min(...before);
  if (
    now === null ||
    before.length < 4 ||
    best <= 0 ||
    now < TOO_MUCH * best ||
    now < Math.max(...before.slice(0, 2))
  ) {
    return null;
  }
  return { kind: "grows", series: series.name, best, now, rate };
}

/** The mean of every epoch. */
function byEpoch(series: Series): Point[] {
  const sums = new Map<number, { total: number; count: number; step: number }>();
  for (const bucket of series.buckets) {
    const sum = sums.get(bucket.epoch) ?? { total: 0, count: 0, step: 0 };
    sum.total += bucket.total;
    sum.count += bucket.num_values;
    sum.step = bucket.last_step;
    sums.set(bucket.epoch, sum);
  }
  return [...sums]
    .filter(([, sum]) => sum.count > 0)
    .map(([epoch, sum]) => ({ epoch, step: sum.step, value: sum.total / sum.count }))
    .sort((a, b) => a.epoch - b.epoch);
}

function bestOf(points: readonly Point[]): Point | null {
  let best: Point | null = null;
  for (const point of points) {
    if (best === null || point.value < best.value - Math.abs(best.value) * BETTER_BY) best = point;
  }
  return best;
}
