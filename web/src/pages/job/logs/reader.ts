/** Bytes of a log, as they come, as lines with the byte at which each begins. What is no UTF-8 becomes U+FFFD. */
import type { Schemas } from "../../../api/client";

export type PlacedLine = Schemas["PlacedLine"];

const NEWLINE = 10;
/** A line that never ends is given out in parts, so that it does not fill the memory. */
const MAX_BYTES = 65_536;

export class LineReader {
  #rest = new Uint8Array(0);
  #offset: number;
  readonly #decoder = new TextDecoder();

  constructor(offset: number) {
    this.#offset = offset;
  }

  /** The byte at which the line begins that has no end yet. */
  get offset(): number {
    return this.#offset;
  }

  /** The lines that are whole with these bytes. */
  push(bytes: Uint8Array): PlacedLine[] {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const lines: PlacedLine[] = [];
    let start = 0;
    while (start < all.length) {
      const end = all.indexOf(NEWLINE, start);
      if (end < 0 && all.length - start <= MAX_BYTES) break;
      const stop = end < 0 ? start + MAX_BYTES : end;
      const next = end < 0 ? stop : end + 1;
      lines.push({ offset: this.#offset, text: this.#decoder.decode(all.subarray(start, stop)), is_cut: end < 0 });
      this.#offset += next - start;
      start = next;
    }
    this.#rest = all.slice(start);
    return lines;
  }

  /** What has come of the line that has no end yet; null: nothing. */
  partial(): PlacedLine | null {
    if (this.#rest.length === 0) return null;
    return { offset: this.#offset, text: this.#decoder.decode(this.#rest), is_cut: false };
  }
}

/** The most lines that are kept: the oldest go first when one follows, the newest when one looks back. */
export const MAX_KEPT = 20_000;

/** Lines with newer ones after them; what begins where one of them begins is taken once. */
export function appended(lines: readonly PlacedLine[], newer: readonly PlacedLine[]): PlacedLine[] {
  const first = newer[0];
  if (first === undefined) return [...lines];
  const kept = lines.filter((line) => line.offset < first.offset);
  return [...kept, ...newer].slice(-MAX_KEPT);
}

/** Lines with older ones before them. */
export function prepended(lines: readonly PlacedLine[], older: readonly PlacedLine[]): PlacedLine[] {
  const first = lines[0]?.offset ?? Number.POSITIVE_INFINITY;
  return [...older.filter((line) => line.offset < first), ...lines].slice(0, MAX_KEPT);
}
