import { expect, test } from "vitest";
import { changedTags, differences, flatten, linesOfTags, ofItself, rangeOf } from "./facts";

test("tags are changed by their lines: new, other, and gone", () => {
  const before = { lr: "0.1", seed: "3", stage: "a" };
  expect(changedTags(before, linesOfTags(before))).toEqual({});
  expect(changedTags(before, "lr=0.2\n\n seed = 3\nformula=a=b")).toEqual({ lr: "0.2", formula: "a=b", stage: null });
});

test("a submission is flat: one line for each field that is set", () => {
  expect([...flatten({ a: { b: 1, c: null }, args: ["--lr", "0.1"], none: [], on: false })]).toEqual([
    ["a.b", "1"],
    ["args", "--lr 0.1"],
    ["on", "false"],
  ]);
});

test("differences name both sides", () => {
  expect(differences({ a: 1, b: 2, c: { d: "x" } }, { a: 1, b: 3, e: 5 })).toEqual([
    { field: "b", mine: "2", theirs: "3" },
    { field: "c.d", mine: "x", theirs: null },
    { field: "e", mine: null, theirs: "5" },
  ]);
});

test("on its own page a job is not named before every sentence", () => {
  const of = (message: string) => ofItself(message, "job-6", "resnet (night)");
  expect(of("job-6 (resnet (night)): epoch 3 is finished")).toBe("epoch 3 is finished");
  expect(of("job-6 (resnet (night)) has completed")).toBe("has completed");
  expect(of("job-60 (resnet (night)) has completed")).toBe("job-60 (resnet (night)) has completed");
  expect(of("2 of 8 slots: its maximum")).toBe("2 of 8 slots: its maximum");
});

test("a range of one size is one number", () => {
  expect([rangeOf(4, 4), rangeOf(1, 8)]).toEqual(["4", "1–8"]);
});
