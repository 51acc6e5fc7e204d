import { expect, test } from "vitest";
import { trafficBody, withShare } from "./split";

test("a canary takes its part from the version that serves", () => {
  expect(withShare({ 3: 100, 4: 0 }, 4, 10)).toEqual({ 3: 90, 4: 10 });
  expect(trafficBody(withShare({ 3: 90, 4: 10 }, 4, 100))).toEqual({ 4: 100 });
});

test("others keep their ratio, and all are a hundred whatever is rounded", () => {
  expect(withShare({ 1: 60, 2: 30, 3: 10 }, 3, 40)).toEqual({ 1: 40, 2: 20, 3: 40 });
  for (let percent = 0; percent <= 100; percent += 1) {
    const split = withShare({ 1: 33, 2: 33, 3: 34 }, 2, percent);
    expect(Object.values(split).reduce((total, value) => total + value, 0)).toBe(100);
    expect(split[2]).toBe(percent);
  }
});

test("what the others lack goes to them equally, and one alone has all", () => {
  expect(withShare({ 1: 0, 2: 0, 3: 100 }, 3, 50)).toEqual({ 1: 25, 2: 25, 3: 50 });
  expect(withShare({ 1: 100 }, 1, 10)).toEqual({ 1: 100 });
});
