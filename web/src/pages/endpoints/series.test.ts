import { expect, test } from "vitest";
import { column, columnsOf } from "./series";

test("series that have no point at an instant have a hole there", () => {
  const columns = columnsOf([
    { name: "a", at: 20, value: 2 },
    { name: "a", at: 10, value: 1 },
    { name: "b", at: 20, value: Number.NaN },
    { name: "b", at: 30, value: 3 },
  ]);
  expect(columns.x).toEqual([10, 20, 30]);
  expect(columns.values).toEqual({ a: [1, 2, null], b: [null, null, 3] });
  expect(column(columns, "c")).toEqual([null, null, null]);
});

test("what is older than the window is left out", () => {
  expect(columnsOf([{ name: "a", at: 1, value: 1 }], 5)).toEqual({ x: [], values: {} });
});
