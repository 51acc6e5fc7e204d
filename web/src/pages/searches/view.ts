/** Which part of a scale is shown: a few results that are far away do not flatten all others. */
import { wantsLog } from "./shown";

export interface View {
  low: number;
  high: number;
  /** By orders of magnitude. */
  log: boolean;
  /** So many values lie outside. */
  outside: number;
}

/** How many times as far as nine in ten reach something has to be to be left out. */
const FAR = 5;

export function viewOf(values: readonly number[]): View {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const [least = 0, most = 1] = [sorted[0], sorted.at(-1)];
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const [lower, upper] = [at(0.05), at(0.95)];
  const span = upper - lower;
  const isFar = (distance: number) => sorted.length >= 10 && span > 0 && distance > FAR * span;
  const low = isFar(lower - least) ? lower - 0.1 * span : least;
  const high = isFar(most - upper) ? upper + 0.1 * span : most;
  const inside = sorted.filter((value) => value >= low && value <= high);
  return {
    low,
    high: high > low ? high : low + (Math.abs(low) || 1),
    log: wantsLog(inside),
    outside: sorted.length - inside.length,
  };
}
