import { expect, test } from "vitest";
import { advise, evenSizes, sizesOf } from "./virtual_workers";

test("eight parts divide over one to eight workers as the documents say", () => {
  const shares = sizesOf(8, 8).map((size) => Math.round(size.efficiency * 100));
  expect(shares).toEqual([100, 100, 89, 100, 80, 67, 57, 100]);
  expect(sizesOf(8, 8)[2]?.parts).toEqual([2, 3]);
});

test("24 parts keep more sizes up to 8 even than 8 do", () => {
  expect(advise(8, 1, 8)).toEqual({ parts: 24, even: [1, 2, 3, 4, 6, 8] });
});

test("nothing is advised where all sizes are used well", () => {
  expect(advise(8, 1, 2)).toBeNull();
  expect(advise(8, 4, 4)).toBeNull();
  expect(advise(24, 1, 4)).toBeNull();
});

test("a V that nothing beats is kept", () => {
  expect(advise(60, 1, 7)).toBeNull();
});

test("fewer parts than workers give no sizes beyond them", () => {
  expect(sizesOf(4, 8)).toHaveLength(4);
  expect(evenSizes(4, 1, 8)).toEqual([1, 2, 4]);
  expect(sizesOf(0, 8)).toEqual([]);
});

test.each(Array.from({ length: 64 }, (_, i) => i + 1))("with a maximum of %d advice is never worse", (max) => {
  for (const parts of [max, max + 1, Math.max(8, max), max * 2]) {
    const advice = advise(parts, 1, max);
    if (advice === null) continue;
    expect(advice.even.length).toBeGreaterThan(evenSizes(parts, 1, max).length);
    expect(advice.parts).toBeGreaterThanOrEqual(max);
  }
});
