import { describe, expect, it } from "vitest";
import { recycle, type Slot } from "./recycle";

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, place) => from + place);
const indexes = (slots: readonly Slot[]) => slots.map((slot) => slot.index);

describe("the rows of a long list", () => {
  it("take the elements of those that went, and move none", () => {
    const before = recycle([], [0, 1, 2], true);
    expect(recycle(before, [1, 2, 3], false)).toEqual([
      { key: 0, index: 3 },
      { key: 1, index: 1 },
      { key: 2, index: 2 },
    ]);
  });

  it("are moved into their order, each with its own elements", () => {
    const before = recycle(recycle([], [0, 1, 2], true), [1, 2, 3], false);
    expect(recycle(before, [1, 2, 3], true)).toEqual([
      { key: 1, index: 1 },
      { key: 2, index: 2 },
      { key: 0, index: 3 },
    ]);
  });

  it("are those that are asked for, each once and with a key of its own, wherever one scrolls to", () => {
    let slots: readonly Slot[] = [];
    const kept = new Map<number, number>();
    for (const [first, last] of [
      [0, 9],
      [4, 15],
      [14, 20],
      [0, 3],
      [500, 530],
      [501, 510],
      [490, 502],
    ] as const) {
      slots = recycle(slots, range(first, last), false);
      expect(indexes(slots).sort((one, other) => one - other)).toEqual(range(first, last));
      expect(new Set(slots.map((slot) => slot.key)).size).toBe(slots.length);
      for (const { key, index } of slots) {
        if (kept.has(index)) expect(key).toBe(kept.get(index));
      }
      kept.clear();
      for (const { key, index } of slots) kept.set(index, key);
    }
  });
});
