/** Milliseconds to wait before the next try: 1, 2, 4, … 15 s, each shortened by up to a half so that many do not come at once. */
export function waitBefore(attempt: number, random: number): number {
  const longest = Math.min(15_000, 1_000 * 2 ** Math.min(attempt, 10));
  return longest * (1 - random / 2);
}
