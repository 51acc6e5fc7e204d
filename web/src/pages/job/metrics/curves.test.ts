import { expect, test } from "vitest";
import { aligned, type Bucket, curveOf, jobsOf, type Scale, smoothed, stepsBetween, zoomOf } from "./curves";

const STEP: Scale = { axis: "step", startedAt: null, stepsPerEpoch: null };
const bucket = (step: number, value: number | null, more: Partial<Bucket> = {}): Bucket => ({
  first_step: step,
  last_step: step,
  epoch: 0,
  at: 1000 + step,
  num_points: 1,
  num_values: value === null ? 0 : 1,
  total: value ?? 0,
  lowest: value,
  highest: value,
  ...more,
});

test("buckets are points over steps, time or epochs; what is no number is a gap", () => {
  const buckets = [bucket(1, 4), bucket(2, null), bucket(4, 3, { num_points: 2, num_values: 2, total: 6, highest: 5 })];
  expect(curveOf(buckets, STEP)).toEqual({
    x: [1, 2, 4],
    mean: [4, null, 3],
    lowest: [4, null, 3],
    highest: [4, null, 5],
    isMean: true,
  });
  expect(curveOf(buckets, { ...STEP, axis: "time", startedAt: 1001 }).x).toEqual([0, 1, 3]);
  expect(curveOf(buckets, { ...STEP, axis: "epoch", stepsPerEpoch: 2 }).x).toEqual([0.5, 1, 2]);
});

test("smoothing begins at the first value and leaves what is constant as it is", () => {
  expect(smoothed([5, 5, 5], 0.9).map((value) => Math.round((value ?? 0) * 1e9) / 1e9)).toEqual([5, 5, 5]);
  const [first, gap, third] = smoothed([1, null, 2], 0.5);
  expect([first, gap]).toEqual([1, null]);
  expect(third).toBeCloseTo((0.5 * 0.5 * 1 + 0.5 * 2) / 0.75);
  expect(smoothed([1, 9], 0)).toEqual([1, 9]);
});

test("curves of several jobs share an axis", () => {
  expect(
    aligned([
      { x: [1, 3], values: [10, 30] },
      { x: [2, 3], values: [20, 33] },
    ]),
  ).toEqual({
    x: [1, 2, 3],
    values: [
      [10, undefined, 30],
      [undefined, 20, 33],
    ],
  });
  expect(aligned([])).toEqual({ x: [], values: [] });
});

test("what was dragged over is told in steps, whatever the axis", () => {
  const buckets = [bucket(1, 1), bucket(5, 1), bucket(9, 1)];
  expect(stepsBetween(buckets, { ...STEP, axis: "time" }, [1004, 1010])).toEqual([5, 9]);
  expect(stepsBetween(buckets, STEP, [5.5, 6])).toBeNull();
});

test("jobs and steps are read from the address; nonsense is nothing", () => {
  expect(jobsOf("7, job-8 job-8 x <b>")).toEqual(["job-7", "job-8"]);
  expect([zoomOf("10-20"), zoomOf("20-10"), zoomOf("x"), zoomOf(null)]).toEqual([[10, 20], null, null, null]);
});
