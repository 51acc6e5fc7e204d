import { expect, test } from "vitest";
import { historyOf, spaceText, type TrialRow, valueText, wantsLog } from "./shown";

const trial = (number: number, result: number | null, more: Partial<TrialRow> = {}): TrialRow =>
  ({
    number,
    state: "completed",
    results: result === null ? null : [result],
    violation: null,
    job_id: "job-1",
    ...more,
  }) as TrialRow;

test("the best so far is of those that have completed and keep all bounds, whatever order they come in", () => {
  const history = historyOf(
    [
      trial(3, 0.2),
      trial(0, 0.5),
      trial(1, 0.1, { state: "pruned" }),
      trial(2, 0.05, { violation: 1 }),
      trial(4, null),
    ],
    false,
  );
  expect(history).toEqual({ x: [0, 1, 2, 3], values: [0.5, 0.1, 0.05, 0.2], best: [0.5, 0.5, 0.5, 0.2] });
  expect(historyOf([trial(0, 1), trial(1, 3), trial(2, 2)], true).best).toEqual([1, 3, 3]);
});

test("values are read as they are written", () => {
  expect([0.00312, 16, "relu", true, null, [64, 64]].map((value) => valueText(value))).toEqual([
    "0.00312",
    "16",
    "relu",
    "true",
    "null",
    "[64,64]",
  ]);
  expect(valueText(undefined)).toBe("–");
  expect(spaceText({ kind: "float", low: 1e-5, high: 0.1, log: true, choices: [] })).toBe("0.00001 … 0.1, log");
});

test("orders of magnitude are shown where there are some", () => {
  expect([wantsLog([1, 200]), wantsLog([0, 200]), wantsLog([1, 2]), wantsLog([])]).toEqual([true, false, false, false]);
});
