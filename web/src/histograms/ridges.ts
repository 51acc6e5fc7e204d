/** What a picture of histograms is computed from: which there are, over which values, and how high each one is where. */
import type { Schemas } from "../api/client";

export type Histogram = Schemas["TensorHistogram"];
export type Kind = "weights" | "gradients" | "others";
export const KINDS: readonly Kind[] = ["weights", "gradients", "others"];

/** A name of histograms without the word that its kind begins with. */
export interface Layer {
  name: string;
  title: string;
}

export function kindOf(name: string): Kind {
  return name.startsWith("weights/") ? "weights" : name.startsWith("gradients/") ? "gradients" : "others";
}

export function titleOf(name: string): string {
  return kindOf(name) === "others" ? name : name.slice(name.indexOf("/") + 1);
}

/** What there is of each kind, in an order in which `layer2` comes before `layer10`. */
export function layersOf(names: readonly string[]): Record<Kind, Layer[]> {
  const found: Record<Kind, Layer[]> = { weights: [], gradients: [], others: [] };
  for (const name of names) found[kindOf(name)].push({ name, title: titleOf(name) });
  for (const kind of KINDS)
    found[kind].sort((one, other) => one.title.localeCompare(other.title, "en", { numeric: true }));
  return found;
}

/** What is shown first: of the first kind there is, a matrix of weights rather than a bias of few values. */
export function firstLayer(layers: Readonly<Record<Kind, readonly Layer[]>>): string | null {
  const some = KINDS.map((kind) => layers[kind]).find((of) => of.length > 0) ?? [];
  return (some.find((layer) => layer.title.endsWith("weight")) ?? some[0])?.name ?? null;
}

/** The name to go to when another kind is chosen: that of the same layer if there is one, else the first. */
export function sameLayer(layers: readonly Layer[], name: string): string | null {
  return (layers.find((layer) => layer.title === titleOf(name)) ?? layers[0])?.name ?? null;
}

export function numValues(histogram: Histogram): number {
  return histogram.counts.reduce((sum, count) => sum + count, 0);
}

export function edgeOf(histogram: Histogram, index: number): number {
  const { lowest, highest, counts } = histogram;
  return index >= counts.length ? highest : lowest + (index * (highest - lowest)) / counts.length;
}

export type Extent = readonly [number, number];

/** From the lowest to the highest value of all; of values that are all the same a little around them. */
export function extentOf(histograms: readonly Histogram[]): Extent {
  const some = histograms.filter((one) => one.counts.length > 0);
  if (some.length === 0) return [0, 1];
  const low = Math.min(...some.map((one) => one.lowest));
  const high = Math.max(...some.map((one) => one.highest));
  if (low < high) return [low, high];
  const around = Math.max(Math.abs(low) * 0.1, 1e-6);
  return [low - around, high + around];
}

const RARE = 0.002;
const ODD = 0.1;

/**
 * What is drawn: all values, unless a few lie so far outside that the others would be a line. Then it is what holds all
 * but a few in a thousand values, at all but a tenth of the steps.
 */
export function focusOf(histograms: readonly Histogram[]): Extent {
  const all = extentOf(histograms);
  const some = histograms.filter((one) => one.counts.length > 0);
  const lows = some.map((one) => quantile(one, RARE) ?? 0).sort((one, other) => one - other);
  const highs = some.map((one) => quantile(one, 1 - RARE) ?? 0).sort((one, other) => other - one);
  const odd = Math.floor(ODD * some.length);
  const [low = 0, high = 0] = [lows[odd], highs[odd]];
  return low < high && high - low < 0.5 * (all[1] - all[0]) ? [low, high] : all;
}

/** How many bins are drawn: fewer for few values, where most bins would hold one or none. */
export function numBinsOf(histograms: readonly Histogram[]): number {
  const most = Math.max(0, ...histograms.map(numValues));
  return Math.min(80, Math.max(16, Math.round(3 * Math.cbrt(most))));
}

/** The counts in other bins, equally wide from `low` to `high`, as if the values of a bin lay evenly in it. */
export function rebinned(histogram: Histogram, [low, high]: Extent, numBins: number): number[] {
  const found = new Array<number>(numBins).fill(0);
  const scale = numBins / (high - low);
  histogram.counts.forEach((count, index) => {
    if (count === 0) return;
    const from = (edgeOf(histogram, index) - low) * scale;
    const until = (edgeOf(histogram, index + 1) - low) * scale;
    if (until < 0 || from > numBins) return;
    const first = Math.min(numBins - 1, Math.max(0, Math.floor(from)));
    const last = Math.min(numBins - 1, Math.max(first, Math.ceil(until) - 1));
    for (let bin = first; bin <= last; bin += 1) {
      const share = from === until ? 1 : (Math.min(until, bin + 1) - Math.max(from, bin)) / (until - from);
      found[bin] = (found[bin] ?? 0) + count * share;
    }
  });
  return found;
}

export interface Ridge {
  histogram: Histogram;
  /** From 0 to 1, one for each bin: 1 is the highest of all ridges. Each is of its own number of values. */
  heights: number[];
}

/** At most so many histograms, evenly over all, the first and the last among them, as ridges over the same values. */
export function ridgesOf(histograms: readonly Histogram[], extent: Extent, numBins: number, most: number): Ridge[] {
  const chosen = evenly(histograms, most);
  const shares = chosen.map((one) => {
    const all = Math.max(1, numValues(one));
    return rebinned(one, extent, numBins).map((count) => count / all);
  });
  const top = Math.max(...shares.flat(), Number.MIN_VALUE);
  return chosen.map((histogram, at) => ({ histogram, heights: (shares[at] ?? []).map((share) => share / top) }));
}

export function evenly<T>(items: readonly T[], most: number): T[] {
  if (items.length <= most) return [...items];
  const step = (items.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, at) => items[Math.round(at * step)] as T);
}

export interface Bin {
  from: number;
  until: number;
  count: number;
}

/** The bin that a value lies in; null: the histogram does not reach there. */
export function binAt(histogram: Histogram, value: number): Bin | null {
  const { lowest, highest, counts } = histogram;
  if (counts.length === 0 || value < lowest || value > highest) return null;
  const width = (highest - lowest) / counts.length;
  const index = width > 0 ? Math.min(counts.length - 1, Math.floor((value - lowest) / width)) : 0;
  return { from: edgeOf(histogram, index), until: edgeOf(histogram, index + 1), count: counts[index] ?? 0 };
}

/** The value below which a share of the values lies, as far as bins tell; null: there are none. */
export function quantile(histogram: Histogram, share: number): number | null {
  const all = numValues(histogram);
  if (all === 0) return null;
  let left = share * all;
  for (const [index, count] of histogram.counts.entries()) {
    if (count > 0 && left <= count) {
      const from = edgeOf(histogram, index);
      return from + (left / count) * (edgeOf(histogram, index + 1) - from);
    }
    left -= count;
  }
  return histogram.highest;
}

/** Round numbers between two values, about so many, for an axis. */
export function ticksOf([low, high]: Extent, about: number): number[] {
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = ([1, 2, 5, 10].find((one) => one * power >= 0.8 * rough) ?? 10) * power;
  const first = Math.ceil(low / width);
  const last = Math.floor(high / width);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) =>
    Number(((first + at) * width).toPrecision(12)),
  );
}
