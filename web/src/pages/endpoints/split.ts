/** How traffic is shared when one version's part is set: the others keep their ratio, and all together are 100. */

export type Split = Readonly<Record<number, number>>;

/** Set the percent of one version; the others share what is left as they did, or equally if they had nothing. */
export function withShare(split: Split, version: number, percent: number): Record<number, number> {
  const share = Math.min(100, Math.max(0, Math.round(percent)));
  const others = Object.entries(split).flatMap(([key, value]) =>
    Number(key) === version ? [] : [{ key: Number(key), value }],
  );
  if (others.length === 0) return { [version]: 100 };
  const left = 100 - share;
  const had = others.reduce((total, one) => total + one.value, 0);
  const exact = others.map(({ key, value }) => ({ key, part: had > 0 ? (value * left) / had : left / others.length }));
  const result: Record<number, number> = { [version]: share };
  let missing = left;
  for (const { key, part } of exact) {
    result[key] = Math.floor(part);
    missing -= Math.floor(part);
  }
  const byRest = [...exact].sort((a, b) => (b.part % 1) - (a.part % 1) || a.key - b.key);
  for (const { key } of byRest.slice(0, missing)) result[key] = (result[key] ?? 0) + 1;
  return result;
}

/** The same as the server takes it: versions without any are left out. */
export function trafficBody(split: Split): Record<string, number> {
  return Object.fromEntries(Object.entries(split).filter(([, percent]) => percent > 0));
}
