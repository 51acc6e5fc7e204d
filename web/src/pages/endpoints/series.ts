/** Points of several series as columns of one chart: one row for every instant at which any of them has a point. */

interface Point {
  name: string;
  at: number;
  value: number;
}

export interface Columns {
  x: number[];
  values: Readonly<Record<string, (number | null)[]>>;
}

/** Put points side by side; `since` leaves out what is older. */
export function columnsOf(points: readonly Point[], since: number | null = null): Columns {
  const kept = since === null ? points : points.filter((point) => point.at >= since);
  const x = [...new Set(kept.map((point) => point.at))].sort((a, b) => a - b);
  const row = new Map(x.map((at, index) => [at, index]));
  const values: Record<string, (number | null)[]> = {};
  for (const { name, at, value } of kept) {
    values[name] ??= Array.from({ length: x.length }, () => null);
    const index = row.get(at);
    const column = values[name];
    if (index !== undefined && column !== undefined) column[index] = Number.isFinite(value) ? value : null;
  }
  return { x, values };
}

/** A column that may not be there. */
export function column(columns: Columns, name: string): (number | null)[] {
  return columns.values[name] ?? columns.x.map(() => null);
}
