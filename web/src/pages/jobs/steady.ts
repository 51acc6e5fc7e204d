/**
 * Rows that stay where they are while somebody looks at them closely: the newest values in the order of before. What
 * has come meanwhile is counted, and shown when it is asked for.
 */
export interface Steady<T> {
  rows: readonly (T | undefined)[];
  /** So many rows have come since. */
  numNew: number;
  /** The newest order is another one. */
  isChanged: boolean;
}

type Rows<T> = readonly (T | undefined)[];

/** The rows to show: those of `before` with the values of `now`; those that were never seen from where they are now. */
export function steady<T>(before: Rows<T>, now: Rows<T>, idOf: (row: T) => string): Steady<T> {
  const newest = new Map<string, T>();
  for (const row of now) if (row !== undefined) newest.set(idOf(row), row);
  const numNew = Math.max(0, now.length - before.length);
  const kept = new Set<string>();
  for (const row of before) if (row !== undefined) kept.add(idOf(row));
  let isChanged = before.length !== now.length;
  const rows = before.map((row, index) => {
    const current = now[index];
    if (row === undefined) {
      const moved = now[index + numNew];
      return moved !== undefined && !kept.has(idOf(moved)) ? moved : undefined;
    }
    if (current !== undefined && idOf(current) !== idOf(row)) isChanged = true;
    return newest.get(idOf(row)) ?? row;
  });
  return { rows, numNew, isChanged };
}
