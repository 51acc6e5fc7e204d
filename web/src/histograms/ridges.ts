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

/** From the lowest to the highest value of all; of values that are all the same a little around them. */
export function extentOf(histograms: readonly Histogram[]): readonly [number, number] {
  const some = histograms.filter((one) => one.counts.length > 0);
  if (some.length === 0) return [0, 1];
  const low = Math.min(...some.map((one) => one.lowest));
  const high = Math.max(...some.map((one) => one.highest));
  if (low < high) return [low, high];
  const around = Math.max(Math.abs(low) * 0.1, 1e-6);
  return [low - around, high + around];
}

/** The counts in other bins, equally wide from `low` to `high`; the values of a bin lie evenly in it. */
export function rebinned(histogram: Histogram, [low, high]: readonly [number, number], numBins: number): number[] {
  const found = new Array<number>(numBins).fill(0);
  const scale = numBins / (high - low);
  histogram.counts.forEach((count, index) => {
    if (count === 0) return;
    const from = (edgeOf(histogram, index) - low) * scale;
    const until = (edgeOf(histogram, index + 1) - low) * scale;
    const first = Math.min(numBins - 1, Math.max(0, Math.floor(from)));
    const last = Math.min(numBins - 1, Math.max(first, Math.ceil(until) - 1));
    for (let bin = first; bin <= last; bin += 1) {
      const share = first === last ? 1 : (Math.min(until, bin + 1) - Math.max(from, bin)) / (until - from);
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
export function ridgesOf(
  histograms: readonly Histogram[],
  extent: readonly [number, number],
  numBins: number,
  most: number,
): Ridge[] {
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
export function ticksOf([low, high]: readonly [number, number], about: number): number[] {
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / width);
  const last = Math.floor(high / width);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) =>
    Number(((first + at) * width).toPrecision(12)),
  );
}
