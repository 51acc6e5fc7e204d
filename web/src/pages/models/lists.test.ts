import { expect, test } from "vitest";
import { found, isLive, sorted } from "./lists";

const ROWS = [
  { name: "b", count: 10 },
  { name: "A", count: 9 },
  { name: "c", count: 100 },
];
const KEYS = { name: (row: { name: string }) => row.name, count: (row: { count: number }) => row.count };

test("a search finds what has all of its words, in letters of any case", () => {
  expect(found(ROWS, "a 9", (row) => [row.name, String(row.count)])).toEqual([ROWS[1]]);
  expect(found(ROWS, " ", () => [])).toBe(ROWS);
});

test("rows are sorted as people read names and numbers; a word that is no column leaves them", () => {
  expect(sorted(ROWS, "name", KEYS).map((row) => row.name)).toEqual(["A", "b", "c"]);
  expect(sorted(ROWS, "-count", KEYS).map((row) => row.count)).toEqual([100, 10, 9]);
  expect(sorted(ROWS, "other", KEYS)).toBe(ROWS);
});

test("a training whose job is not there any more does not go on", () => {
  expect(["submitting", "pending", "running", "completed", "removed"].map(isLive)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
