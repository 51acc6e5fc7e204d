import { expect, test } from "vitest";
import { viewOf } from "./view";

const usual = Array.from({ length: 30 }, (_, index) => 0.1 + 0.02 * index);

test("one that is far away is left out, and the others fill the scale", () => {
  const view = viewOf([...usual, 1.96e28]);
  expect(view.low).toBe(0.1);
  expect(view.high).toBeLessThan(1);
  expect(view).toMatchObject({ log: false, outside: 1 });
});

test("what differs by orders of magnitude is no outlier", () => {
  const wide = Array.from({ length: 40 }, (_, index) => 10 ** (-6 + index / 5));
  expect(viewOf(wide)).toMatchObject({ low: 1e-6, log: true, outside: 0 });
});

test("there is always something between the ends", () => {
  expect(viewOf([3, 3])).toMatchObject({ low: 3, high: 6 });
  expect(viewOf([])).toMatchObject({ low: 0, high: 1 });
});
