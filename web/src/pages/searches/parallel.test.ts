import { expect, test } from "vitest";
import { axesOf, type Brush, bestPart, brushOf, brushText, isKept, placeOf, RESULT, valueAt } from "./parallel";
import type { Parameters, TrialRow } from "./shown";

const SPACE: Parameters = {
  lr: { kind: "float", low: 1e-4, high: 1e-2, log: true, choices: [] },
  act: { kind: "choice", log: false, choices: ["relu", "gelu", "tanh"] },
  shift: { kind: "float", low: -2, high: 2, log: false, choices: [] },
  seed: { kind: "fixed", value: 7, log: false, choices: [] },
};
const trial = (number: number, lr: number, act: string, shift: number, result: number | null) =>
  ({ number, values: { lr, act, shift }, results: result === null ? null : [result] }) as unknown as TrialRow;
const TRIALS = [trial(0, 1e-3, "gelu", -1, 0.1), trial(1, 1e-2, "relu", 2, 0.2), trial(2, 1e-4, "tanh", 0, null)];
const AXES = axesOf(SPACE, ["loss"], TRIALS);
const axis = (id: string) => AXES.find((one) => one.id === id) ?? AXES[0] ?? raise();

function raise(): never {
  throw new Error("no axis");
}

test("values lie between the ends of their parameters, by orders of magnitude where these are searched so", () => {
  expect(AXES.map((one) => one.id)).toEqual(["lr", "act", "shift", RESULT]);
  expect(placeOf(axis("lr"), 1e-3)).toBeCloseTo(0.5);
  expect(valueAt(axis("lr"), 0.5)).toBeCloseTo(1e-3);
  expect(placeOf(axis("act"), "gelu")).toBe(0.5);
  expect(placeOf(axis("shift"), -2)).toBe(0);
  expect(placeOf(axis(RESULT), 0.2)).toBe(1);
  expect([placeOf(axis("lr"), -1), placeOf(axis("act"), "none"), placeOf(axis("lr"), undefined)]).toEqual([
    null,
    null,
    null,
  ]);
});

test("what goes through the ends of all axes is kept, negative numbers too", () => {
  const kept = (brushes: Readonly<Record<string, Brush>>) =>
    TRIALS.filter((one) => isKept(one, AXES, brushes)).map((one) => one.number);
  expect(kept({ shift: [-1.5, 0] })).toEqual([0, 2]);
  expect(kept({ act: [0, 1], lr: [null, 1e-3] })).toEqual([0]);
  expect(kept({ [RESULT]: [null, 0.15] })).toEqual([0]);
  expect(kept({})).toEqual([0, 1, 2]);
});

test("every objective has an axis, on which what is far outside lies at the end", () => {
  const both = Array.from({ length: 20 }, (_, number) => ({
    ...trial(number, 1e-3, "relu", 0, number),
    results: [number, number === 19 ? 1e9 : 10 + number],
  }));
  const [, , , loss = raise(), size = raise()] = axesOf(SPACE, ["loss", "size"], both);
  expect([loss.id, size.id, size.label]).toEqual([RESULT, `${RESULT}.1`, "size"]);
  expect(size.high).toBeLessThan(40);
  expect([placeOf(size, 10), placeOf(size, 1e9)]).toEqual([0, 1]);
  const kept = both.filter((one) => isKept(one, [loss, size], { [size.id]: [null, 12] }));
  expect(kept.map((one) => one.number)).toEqual([0, 1, 2]);
});

test("of the trials with a result the best part is shown, one at least", () => {
  expect(bestPart(TRIALS, 10).map((one) => one.number)).toEqual([0]);
  expect(bestPart(TRIALS, null)).toHaveLength(2);
});

test("ends go into the address and come back", () => {
  for (const brush of [
    [1e-4, 0.1],
    [null, 5],
    [2, null],
  ] as const)
    expect(brushOf(brushText(brush))).toEqual(brush);
  expect([brushOf(null), brushOf("x..y"), brushOf(".."), brushOf("3")]).toEqual([null, null, null, null]);
});
