/** The series of a training as its charts show them: which belong together, and over what. */
import type { Schemas } from "../../api/client";

type Series = Schemas["Series"];
type Bucket = Schemas["Bucket"];

export type Over = "step" | "epoch" | "time";

export interface Charted {
  title: string;
  /** Names of the series in it, that of the training first. */
  names: readonly string[];
  /** What is better. */
  better: "lower" | "higher" | null;
}

const TESTED = /^(test|val|valid|validation|eval)[_./-]/i;
const LOSS = /(^|[_./-])loss$/i;
const ACCURACY = /(^|[_./-])(acc|accuracy)$/i;

/** Whether a series is of samples that the training does not learn from. */
export function isTested(name: string): boolean {
  return TESTED.test(name);
}

/** The charts of a training: its losses, its accuracies, and each other measure with its test's. */
export function chartsOf(names: readonly string[]): Charted[] {
  const groups = new Map<string, string[]>();
  for (const name of [...names].sort((a, b) => Number(isTested(a)) - Number(isTested(b)))) {
    const bare = name.replace(TESTED, "");
    const title = LOSS.test(bare) && bare.toLowerCase() === "loss" ? "loss" : ACCURACY.test(bare) ? "accuracy" : bare;
    groups.set(title, [...(groups.get(title) ?? []), name]);
  }
  const rank = (title: string) => (title === "loss" ? 0 : title === "accuracy" ? 1 : 2);
  return [...groups]
    .map(([title, of]) => ({ title, names: of, better: betterOf(title) }))
    .sort((a, b) => rank(a.title) - rank(b.title) || (a.title < b.title ? -1 : 1));
}

function betterOf(name: string): Charted["better"] {
  return LOSS.test(name) ? "lower" : ACCURACY.test(name) ? "higher" : null;
}

/** Several series over one axis; undefined where one has no point, null where that is no number. What falls on one place is its mean. */
export function joined(
  series: readonly Series[],
  over: Over,
): { x: number[]; values: (number | null | undefined)[][] } {
  const place = (bucket: Bucket) => (over === "time" ? bucket.at : over === "epoch" ? bucket.epoch : bucket.last_step);
  const tables = series.map((one) => {
    const sums = new Map<number, { total: number; count: number }>();
    for (const bucket of one.buckets) {
      const sum = sums.get(place(bucket)) ?? { total: 0, count: 0 };
      sums.set(place(bucket), { total: sum.total + bucket.total, count: sum.count + bucket.num_values });
    }
    return sums;
  });
  const x = [...new Set(tables.flatMap((table) => [...table.keys()]))].sort((a, b) => a - b);
  const values = tables.map((table) =>
    x.map((at) => {
      const sum = table.get(at);
      return sum === undefined ? undefined : sum.count === 0 ? null : sum.total / sum.count;
    }),
  );
  return { x, values };
}
