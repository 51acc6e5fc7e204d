import { expect, test } from "vitest";
import { Meter } from "./meter";

test("the pace is of the last seconds, and none before there are two samples", () => {
  const meter = new Meter();
  expect(meter.observe("a", { at: 0, done: 0, failed: 0 })).toBeNull();
  expect(meter.observe("a", { at: 0, done: 0, failed: 0 })).toBeNull();
  expect(meter.observe("a", { at: 10, done: 100, failed: 10 })).toEqual({ rate: 10, errors: 0.1 });
  expect(meter.observe("a", { at: 30, done: 100, failed: 10 })).toEqual({ rate: 0, errors: null });
  expect(meter.observe("b", { at: 30, done: 5, failed: 0 })).toBeNull();
});

test("counters that begin anew have no pace yet", () => {
  const meter = new Meter();
  meter.observe("a", { at: 0, done: 50, failed: 0 });
  expect(meter.observe("a", { at: 2, done: 4, failed: 0 })).toBeNull();
  expect(meter.observe("a", { at: 4, done: 8, failed: 0 })).toEqual({ rate: 2, errors: 0 });
});
