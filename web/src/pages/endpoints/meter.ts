/** How fast counters grow, over the last seconds: what is counted a quarter of a second would jump. */

interface Sample {
  /** Seconds. */
  at: number;
  done: number;
  failed: number;
}

export interface Pace {
  /** Per second. */
  rate: number;
  /** The share of failures among what was done; null if nothing was. */
  errors: number | null;
}

const WINDOW_S = 12;

export class Meter {
  readonly #samples = new Map<string, Sample[]>();

  /** Take in counters as they are now; return their pace, null before there are two samples. */
  observe(name: string, sample: Sample): Pace | null {
    let samples = this.#samples.get(name) ?? [];
    const last = samples.at(-1);
    if (last !== undefined && (sample.done < last.done || sample.failed < last.failed)) samples = []; // counted anew
    if (last === undefined || sample.at > last.at || samples.length === 0) samples.push(sample);
    while ((samples[1]?.at ?? Number.POSITIVE_INFINITY) <= sample.at - WINDOW_S) samples.shift();
    this.#samples.set(name, samples);
    const first = samples[0];
    const newest = samples.at(-1);
    if (first === undefined || newest === undefined || newest.at <= first.at) return null;
    const done = newest.done - first.done;
    return { rate: done / (newest.at - first.at), errors: done > 0 ? (newest.failed - first.failed) / done : null };
  }
}
