/**
 * The load of versions over time, as columns of one chart.
 *
 * A point of the server's stands for the time since the one before it, 10 seconds or a bit of the version's age, and what
 * is as it was makes none. So between two points that are far apart all was as the first one says, until the time of the
 * second began. Example: nobody asked from 12:00 on, and the next point, of 3 requests a second, is of 13:00:00. Then the
 * rate was 0 until 12:59:50.
 */

interface Point {
  name: string;
  /** The age of the version in seconds. */
  step: number;
  at: number;
  value: number;
}

/** All that was noted of one version. */
export interface Noted {
  version: number;
  points: readonly Point[];
  /** Until when all is as its newest point says; null: it ended with that. */
  until: number | null;
}

/** null: there is no such number, as of latencies while nobody asks; undefined: another version has a row there. */
type Values = (number | null | undefined)[];

export interface Columns {
  x: number[];
  /** By version and name, such as `3 requests_per_s`. */
  values: Readonly<Record<string, Values>>;
}

interface Row {
  at: number;
  values: Record<string, number | null>;
}

const SAMPLE_S = 10;
const SAMPLES_OF_AGE = 8640;

/** Put versions side by side; `since` leaves out what is older. */
export function columnsOf(noted: readonly Noted[], since: number | null = null): Columns {
  const rows = noted.map(({ points, until }) => clipped(rowsOf(points, until), since));
  const x = [...new Set(rows.flatMap((own) => own.map(({ at }) => at)))].sort((a, b) => a - b);
  const place = new Map(x.map((at, index) => [at, index]));
  const values: Record<string, Values> = {};
  noted.forEach(({ version }, index) => {
    const own = rows[index] ?? [];
    for (const name of new Set(own.flatMap((row) => Object.keys(row.values)))) {
      const found: Values = x.map(() => undefined);
      for (const row of own) found[place.get(row.at) ?? -1] = row.values[name] ?? null;
      values[`${version} ${name}`] = withWholeGaps(found);
    }
  });
  return { x, values };
}

/** A column that may not be there. */
export function column(columns: Columns, name: string): Values {
  return columns.values[name] ?? columns.x.map(() => null);
}

/** The rows of one version: its points, and where it began and ceased to be as it was. */
function rowsOf(points: readonly Point[], until: number | null): Row[] {
  const rows: Row[] = [];
  let lastsS = SAMPLE_S;
  for (const { at, step, values } of samplesOf(points)) {
    lastsS = Math.max(SAMPLE_S, step / SAMPLES_OF_AGE);
    hold(rows, at - lastsS, lastsS);
    const before = rows.at(-1);
    for (const [name, value] of Object.entries(values)) if (before) before.values[name] ??= value; // it begins there
    rows.push({ at, values });
  }
  if (until !== null) hold(rows, until, lastsS);
  return rows;
}

/** Go on with the last row until an instant, if that is not right behind it. */
function hold(rows: Row[], at: number, lastsS: number): void {
  const last = rows.at(-1);
  if (last !== undefined && at - last.at > lastsS / 2) rows.push({ at, values: { ...last.values } });
}

function samplesOf(points: readonly Point[]): (Row & { step: number })[] {
  const samples = new Map<number, Row & { step: number }>();
  for (const { name, step, at, value } of points) {
    const sample = samples.get(at) ?? { at, step, values: {} };
    sample.values[name] = Number.isFinite(value) ? value : null;
    samples.set(at, sample);
  }
  return [...samples.values()].sort((a, b) => a.at - b.at);
}

/** The rows from an instant on, which has what the row before it says. */
function clipped(rows: readonly Row[], since: number | null): readonly Row[] {
  const first = since === null ? 0 : rows.findIndex(({ at }) => at >= since);
  if (first < 0 || since === null) return first < 0 ? [] : rows;
  const before = rows[first - 1];
  return before === undefined ? rows : [{ at: since, values: before.values }, ...rows.slice(first)];
}

/** Beside a gap nothing is drawn, also where another version has a row. */
function withWholeGaps(values: Values): Values {
  const before = carriedOn(values);
  const after = carriedOn([...values].reverse()).reverse();
  return values.map((value, at) => (before[at] === null || after[at] === null ? (value ?? null) : value));
}

/** Every value, or the one before it where there is none. */
function carriedOn(values: Values): Values {
  let last: Values[number];
  return values.map((value) => {
    if (value !== undefined) last = value;
    return last;
  });
}
