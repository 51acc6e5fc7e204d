/**
 * Slots in layers, as they are drawn: from the bottom to the top the layers of the server, the rest of them as one, and
 * what others hold whose work one may not see. uPlot stacks nothing: every layer is drawn as the sum of all up to it,
 * the highest first, each opaque over the one before.
 */
import type { Schemas } from "../api/client";

export type SlotChart = Schemas["SlotChart"];

export interface Layer {
  /** Kind and id, which tell it from others. */
  key: string;
  id: string;
  kind: "job" | "endpoint" | "search" | "queue" | "group" | "user" | "rest" | "others";
  name: string;
  /** The number of its colour; null is grey. */
  colour: number | null;
  values: readonly number[];
}

export interface Stack {
  /** Seconds since the epoch: where each value begins, and the end of the last. */
  x: number[];
  /** From the bottom to the top, those that are shown. */
  layers: Layer[];
  /** Sums of the layers up to each, one list for each layer. */
  sums: number[][];
  capacity: number[];
}

/** The layers of a chart from the bottom to the top, those that hold nothing in it left out. */
export function layersOf(chart: SlotChart, restName: (layers: number) => string, othersName: string): Layer[] {
  const own = chart.keys.map((key, index): Layer => {
    const values = chart.values[index] ?? [];
    return { key: `${key.kind} ${key.id}`, id: key.id, kind: key.kind, name: key.name, colour: key.colour, values };
  });
  const grey = (kind: "rest" | "others", name: string, values: readonly number[]): Layer => {
    return { key: kind, id: "", kind, name, colour: null, values };
  };
  return [
    ...own,
    grey("rest", restName(chart.rest.num_keys), chart.rest.values),
    grey("others", othersName, chart.others),
  ].filter((layer) => layer.values.some((value) => value > 0));
}

/** Stack layers, but for those that are hidden. `until` is where the last values end; it is later than the last begins. */
export function stackOf(chart: SlotChart, layers: readonly Layer[], hidden: ReadonlySet<string>, until: number): Stack {
  const shown = layers.filter((layer) => !hidden.has(layer.key));
  const sums: number[][] = [];
  let below: readonly number[] = chart.times.map(() => 0);
  for (const layer of shown) {
    const sum = below.map((value, index) => value + (layer.values[index] ?? 0));
    sums.push(held(sum));
    below = sum;
  }
  const last = chart.times.at(-1) ?? until;
  return { x: [...chart.times, Math.max(until, last)], layers: shown, sums, capacity: held(chart.capacity) };
}

/** The last value once more: it holds until the end of the chart. */
function held(values: readonly number[]): number[] {
  const last = values.at(-1);
  return last === undefined ? [] : [...values, last];
}

/** Where the value at a time stands in the lists of a chart: the last that begins at it or before. */
export function indexAt(times: readonly number[], at: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((times[middle] ?? Number.POSITIVE_INFINITY) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
