import { expect, test } from "vitest";
import { stepsOf } from "./strip";

test("slots are steps from the submission on, and the last holds until the end", () => {
  const points = [
    { at: 12, num_slots: 4 },
    { at: 20, num_slots: 5 },
  ];
  expect(stepsOf(points, 10, 30)).toEqual({ x: [10, 12, 20, 30], slots: [0, 4, 5, 5] });
});

test("of several at one instant the last counts; a clock that is behind changes nothing", () => {
  const points = [
    { at: 10, num_slots: 1 },
    { at: 10, num_slots: 2 },
  ];
  expect(stepsOf(points, 10, 5)).toEqual({ x: [10], slots: [2] });
  expect(stepsOf([], 10, 20)).toEqual({ x: [10, 20], slots: [0, 0] });
});
