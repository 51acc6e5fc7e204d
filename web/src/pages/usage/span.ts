/** Which time the usage is of: so long until now (`-7d`), or from one day to another, both whole (`2026-11-01`). */

export interface Span {
  /** As the server takes it: seconds since the epoch, or below zero so many before now. */
  from: number;
  until: number;
}

export const PRESETS = ["-1d", "-7d", "-30d", "-90d"] as const;
export const USUAL = "-30d";

const DAY_S = 86_400;

/** Read what stands in an address; what cannot be read is as if it was not there. */
export function spanOf(from: string | null, until: string | null): Span {
  const first = dayOf(from);
  const last = dayOf(until);
  if (first !== null && last !== null && last >= first) return { from: seconds(first), until: seconds(next(last)) };
  if (first !== null) return { from: seconds(first), until: 0 };
  const days = /^-(\d{1,4})d$/.exec(from ?? "")?.[1] ?? USUAL.slice(1, -1);
  return { from: -Math.max(1, Number(days)) * DAY_S, until: 0 };
}

/** The preset that an address names; null: days are chosen. */
export function presetOf(from: string | null): string | null {
  if (dayOf(from) !== null) return null;
  return from !== null && /^-\d{1,4}d$/.test(from) ? from : USUAL;
}

/** A day as fields for dates write it, by the clock of who looks. */
export function dayText(at: number): string {
  const then = new Date(at * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
}

function dayOf(text: string | null): Date | null {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text ?? "");
  if (parts === null) return null;
  const day = new Date(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]));
  return day.getMonth() === Number(parts[2]) - 1 ? day : null;
}

function next(day: Date): Date {
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1);
}

function seconds(day: Date): number {
  return day.getTime() / 1000;
}
