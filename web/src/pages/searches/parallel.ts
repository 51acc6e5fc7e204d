/** Parallel coordinates: where the values of trials lie on axes, and which trials are shown. Places are 0 to 1, upwards. */

import { type Parameters, resultOf, type TrialRow, type Value, valueText } from "./shown";
import { viewOf } from "./view";

export interface Axis {
  id: string;
  label: string;
  log: boolean;
  low: number;
  high: number;
  /** Of choices: each has a place of its own. */
  categories: readonly string[] | null;
  /** Which objective it is of, counted from 0; null: it is a parameter's. */
  objective: number | null;
}

export const RESULT = "result";
/** As many axes as can be told apart. */
export const MAX_AXES = 10;

/** The axes of a search's parameters in their order, and of what the trials that are shown came to, by each objective. */
export function axesOf(parameters: Parameters, metrics: readonly string[], shown: readonly TrialRow[]): Axis[] {
  const axes = Object.entries(parameters)
    .filter(([, parameter]) => parameter.kind !== "fixed")
    .slice(0, MAX_AXES)
    .map(([name, parameter]): Axis => {
      const axis = { id: name, label: name, objective: null };
      if (parameter.kind === "choice") {
        const categories = parameter.choices.map(valueText);
        return { ...axis, log: false, low: 0, high: Math.max(1, categories.length - 1), categories };
      }
      const low = parameter.low ?? 0;
      return { ...axis, log: parameter.log, low, high: parameter.high ?? low + 1, categories: null };
    });
  const results = metrics.map((metric, objective): Axis => {
    const { low, high, log } = viewOf(shown.flatMap((trial) => trial.results?.[objective] ?? []));
    const id = objective === 0 ? RESULT : `${RESULT}.${objective}`;
    return { id, label: metric, objective, log, low, high, categories: null };
  });
  return [...axes, ...results];
}

/** Where a value lies; null if it lies nowhere. */
export function placeOf(axis: Axis, value: Value | undefined): number | null {
  if (axis.categories !== null) {
    const index = value === undefined ? -1 : axis.categories.indexOf(valueText(value));
    return index < 0 ? null : axis.categories.length === 1 ? 0.5 : index / (axis.categories.length - 1);
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  if (axis.log && (value <= 0 || axis.low <= 0)) return null;
  const place = axis.log
    ? Math.log(value / axis.low) / Math.log(axis.high / axis.low)
    : (value - axis.low) / (axis.high - axis.low);
  return axis.objective === null ? place : Math.min(1, Math.max(0, place));
}

/** The value at a place; of choices the number of the nearest. */
export function valueAt(axis: Axis, place: number): number {
  const inside = Math.min(1, Math.max(0, place));
  if (axis.log && axis.low > 0) return axis.low * (axis.high / axis.low) ** inside;
  return axis.low + inside * (axis.high - axis.low);
}

export function valueOn(axis: Axis, trial: TrialRow): Value | undefined {
  return axis.objective === null ? trial.values[axis.id] : (trial.results?.[axis.objective] ?? undefined);
}

/** Ends of what is kept of an axis; of choices they are numbers of choices. Null: no end. */
export type Brush = readonly [low: number | null, high: number | null];

/** Whether a trial goes through all that is kept. */
export function isKept(trial: TrialRow, axes: readonly Axis[], brushes: Readonly<Record<string, Brush>>): boolean {
  return axes.every((axis) => {
    const brush = brushes[axis.id];
    if (brush === undefined) return true;
    const value = valueOn(axis, trial);
    const number =
      axis.categories === null ? value : axis.categories.indexOf(value === undefined ? "" : valueText(value));
    if (typeof number !== "number" || number < 0)
      return axis.categories === null && typeof number === "number" ? within(number, brush) : false;
    return within(number, brush);
  });
}

function within(value: number, [low, high]: Brush): boolean {
  return (low === null || value >= low) && (high === null || value <= high);
}

/** The best part of trials that have a result, as the server ordered them: the best first. */
export function bestPart(trials: readonly TrialRow[], percent: number | null): TrialRow[] {
  const withResult = trials.filter((trial) => resultOf(trial) !== null);
  return percent === null
    ? withResult
    : withResult.slice(0, Math.max(1, Math.ceil((withResult.length * percent) / 100)));
}

/** A brush as it stands in an address: `0.001..0.1`, `..5`, `2..`. */
export function brushText([low, high]: Brush): string {
  return low === null && high === null ? "" : `${low ?? ""}..${high ?? ""}`;
}

export function brushOf(written: string | null): Brush | null {
  const parts = written?.split("..");
  if (parts?.length !== 2) return null;
  const [low = null, high = null] = parts.map((part) => (part === "" ? null : Number(part)));
  if (Number.isNaN(low) || Number.isNaN(high) || (low === null && high === null)) return null;
  return [low, high];
}
