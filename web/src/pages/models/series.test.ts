import { expect, test } from "vitest";
import { chartsOf, joined } from "./series";

function series(name: string, values: readonly (number | null)[], perEpoch = 1) {
  const buckets = values.map((value, index) => ({
    num_points: 1,
    num_values: value === null ? 0 : 1,
    lowest: value,
    highest: value,
    total: value ?? 0,
    first_step: index * 10 + 1,
    last_step: (index + 1) * 10,
    epoch: Math.floor(index / perEpoch),
    at: 1000 + index,
  }));
  return { name, buckets };
}

test("losses and accuracies of training and test share their charts, and come first", () => {
  const names = ["val_accuracy", "samples", "test_loss", "loss", "accuracy", "eval/f1", "f1"];
  expect(chartsOf(names).map(({ title, names: of, better }) => [title, of, better])).toEqual([
    ["loss", ["loss", "test_loss"], "lower"],
    ["accuracy", ["accuracy", "val_accuracy"], "higher"],
    ["f1", ["f1", "eval/f1"], null],
    ["samples", ["samples"], null],
  ]);
});

test("series of other lengths stand over one axis", () => {
  const all = [series("loss", [3, 2, 1]), { ...series("test_loss", [2.5]), name: "test_loss" }];
  expect(joined(all, "step")).toEqual({
    x: [10, 20, 30],
    values: [
      [3, 2, 1],
      [2.5, undefined, undefined],
    ],
  });
});

test("over epochs the means of an epoch are one", () => {
  expect(joined([series("loss", [4, 2, 1], 2)], "epoch")).toEqual({ x: [0, 1], values: [[3, 1]] });
});
