/** Lengths of time and sizes as the command line takes them: `90s`, `1h30m`, `2d`; `4GB`, `512MiB`. */

const TIME_UNITS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** Seconds; null if it is no length of time. */
export function secondsOf(text: string): number | null {
  if (!/^(\s*\d+(\.\d+)?\s*(s|min|m|h|d|)\s*)+$/i.test(text)) return null;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*(s|min|m|h|d|)/gi)) {
    total += Number(number) * (TIME_UNITS[(unit ?? "").toLowerCase()] ?? 1);
  }
  return total;
}

/** Bytes; null if it is no size. */
export function bytesOf(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([KMGT])?(i)?B?\s*$/i.exec(text);
  if (found === null) return null;
  const power = found[2] === undefined ? 0 : "KMGT".indexOf(found[2].toUpperCase()) + 1;
  return Math.round(Number(found[1]) * (found[3] === undefined ? 1000 : 1024) ** power);
}

/** A length of time as one types it: `1h30m`. */
export function timeText(seconds: number): string {
  if (!Number.isInteger(seconds)) return `${seconds}s`;
  const parts: string[] = [];
  let rest = seconds;
  for (const [unit, length] of [
    ["d", 86_400],
    ["h", 3600],
    ["m", 60],
  ] as const) {
    if (rest >= length) parts.push(`${Math.floor(rest / length)}${unit}`);
    rest %= length;
  }
  if (rest > 0 || parts.length === 0) parts.push(`${rest}s`);
  return parts.join("");
}

/** A size as one types it, whole: `4GB`, `64MiB`, `1000`. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of [
    ["TiB", 1024 ** 4],
    ["TB", 1000 ** 4],
    ["GiB", 1024 ** 3],
    ["GB", 1000 ** 3],
    ["MiB", 1024 ** 2],
    ["MB", 1000 ** 2],
  ] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}
