import { expect, test } from "vitest";
import { hintsOf } from "./hints";
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
      [2.5, null, null],
    ],
  });
});

test("nothing is said of a training that goes on well, or has hardly begun", () => {
  expect(hintsOf([series("loss", [1, 0.8, 0.6, 0.5, 0.4, 0.3])], 0.1)).toEqual([]);
  expect(hintsOf([], 0.1)).toEqual([]);
});

test("a test loss that has not become better for five epochs says to end", () => {
  const losses = [0.9, 0.5, 0.3, 0.301, 0.302, 0.3, 0.3, 0.31];
  const found = hintsOf(
    [series("loss", losses), series("test_loss", [0.5, 0.4, 0.31, 0.32, 0.32, 0.31, 0.32, 0.32])],
    0.1,
  );
  expect(found).toEqual([
    { kind: "stop", series: "test_loss", best: 0.31, epoch: 2, since: 5 },
    { kind: "flat", series: "loss", epochs: 5, rate: 0.01 },
  ]);
});

test("a test loss that grows while the training's own falls says that it learns by heart", () => {
  const found = hintsOf(
    [series("loss", [0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]), series("val_loss", [0.5, 0.4, 0.5, 0.5, 0.6, 0.6, 0.7])],
    0.1,
  );
  expect(found).toEqual([{ kind: "overfits", series: "val_loss", best: 0.4, now: 0.7, epoch: 1 }]);
});

test("a loss that is no number, or has become much larger, says to take a smaller learning rate", () => {
  expect(hintsOf([series("loss", [1, 0.5, null])], 0.1)).toMatchObject([{ kind: "diverged", step: 21, rate: 0.01 }]);
  expect(hintsOf([series("loss", [1, 0.5, 0.4, 0.3, 0.3, 2])], 0.1)).toMatchObject([
    { kind: "grows", best: 0.3, now: 2 },
  ]);
});
