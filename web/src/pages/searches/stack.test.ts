import { expect, test } from "vitest";
import { stacked } from "./stack";

test("the first column is the sum of all, the last the lowest layer", () => {
  expect(
    stacked([
      [1, 2],
      [3, 0],
      [1, 1],
    ]),
  ).toEqual([
    [5, 3],
    [4, 2],
    [1, 2],
  ]);
  expect(stacked([])).toEqual([]);
});
