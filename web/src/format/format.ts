/** Numbers and times as people read them: a unit after a narrow space, thousands apart, "–" for what is not there. */

const NARROW = " ";
export const NONE = "–";

const twoDigits = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A count: `10,000`. */
export function count(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? NONE : whole.format(value);
}

/** A count with its noun: `1 slot`, `5 slots`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)}${NARROW}${value === 1 ? one : many}`;
}

/** A measure with three significant digits: `0.0312`, `1.25e-5`, `1,240`. */
export function measure(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e9) return trim(value.toExponential(2)).replace("e+", "e");
  if (size >= 1000) return whole.format(value);
  return trim(value.toPrecision(3));
}

/** Measures that stand beside each other on an axis, with as many digits as tell them apart; null: nothing is there. */
export function measures(values: readonly (number | null)[]): string[] {
  const written = (digits: number) =>
    values.map((value) => {
      if (value === null) return "";
      const size = Math.abs(value);
      return digits === 3 || size < 1e-3 || size >= 1000 ? measure(value) : trim(value.toPrecision(digits));
    });
  for (let digits = 3; digits < 7; digits += 1) {
    const found = written(digits);
    if (found.every((one, index) => one === "" || one !== found[index - 1])) return found;
  }
  return written(7);
}

function trim(text: string): string {
  return text.replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "");
}

/** A share of one: `31 %`. */
export function percent(share: number | null | undefined, digits = 0): string {
  if (share == null || !Number.isFinite(share)) return NONE;
  return `${(share * 100).toFixed(digits)}${NARROW}%`;
}

/** Bytes, decimal: `1.2 GB`. */
export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const text = unit === 0 || size >= 100 ? size.toFixed(0) : trim(size.toPrecision(2 + Number(size >= 10)));
  return `${text}${NARROW}${units[unit]}`;
}

/** A duration of seconds: `180 ms`, `12 s`, `3 min 20 s`, `1 h 4 min`, `2 d 3 h`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds === 0) return `0${NARROW}s`;
  if (seconds < 0.9995) return `${Math.max(1, Math.round(seconds * 1000))}${NARROW}ms`;
  if (seconds < 9.95) return `${trim(seconds.toFixed(1))}${NARROW}s`;
  const all = Math.round(seconds);
  if (all < 60) return `${all}${NARROW}s`;
  if (all < 3600) return pair(Math.floor(all / 60), "min", all % 60, "s");
  if (all < 86_400) return pair(Math.floor(all / 3600), "h", Math.floor((all % 3600) / 60), "min");
  return pair(Math.floor(all / 86_400), "d", Math.floor((all % 86_400) / 3600), "h");
}

function pair(first: number, one: string, second: number, other: string): string {
  const head = `${first}${NARROW}${one}`;
  return second === 0 ? head : `${head} ${second}${NARROW}${other}`;
}

/** How long ago, or until when: one unit, for tables. `12 s`, `4 min`, `3 h`, `2 d`. */
export function age(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const size = Math.max(0, seconds);
  if (size < 60) return `${Math.floor(size)}${NARROW}s`;
  if (size < 3600) return `${Math.floor(size / 60)}${NARROW}min`;
  if (size < 86_400) return `${Math.floor(size / 3600)}${NARROW}h`;
  return `${Math.floor(size / 86_400)}${NARROW}d`;
}

/** Slot-seconds as slot-hours, with two digits so that they stand below each other: `12.50`, `1,240.00`; `< 0.01`. */
export function slotHours(seconds: number | null | undefined): string {
  return slots(seconds == null ? null : seconds / 3600);
}

/** Slots on average: `3.25`; what is less than a hundredth is said to be. */
export function slots(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  return value > 0 && value < 0.01 ? "< 0.01" : twoDigits.format(value);
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const dated = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

/** A time of today as `06:04:12`, another one with its day. Seconds since the epoch. */
export function time(at: number | null | undefined, now: number = Date.now() / 1000): string {
  if (at == null || !Number.isFinite(at)) return NONE;
  const then = new Date(at * 1000);
  const today = new Date(now * 1000);
  if (then.toDateString() === today.toDateString()) return clock.format(then);
  return (then.getFullYear() === today.getFullYear() ? dayAndClock : dated).format(then);
}

/** A time whole, for tooltips: `2026-11-22T06:04:12Z`. */
export function isoTime(at: number): string {
  return new Date(at * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}
