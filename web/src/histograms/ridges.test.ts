import { expect, test } from "vitest";
import {
  binAt,
  evenly,
  extentOf,
  firstLayer,
  focusOf,
  type Histogram,
  layersOf,
  numBinsOf,
  quantile,
  rebinned,
  ridgesOf,
  sameLayer,
  ticksOf,
} from "./ridges";

function histogram(lowest: number, highest: number, counts: number[], step = 1): Histogram {
  return { name: "a", step, epoch: 0, at: 1, lowest, highest, counts, num_nan: 0, num_infinite: 0 };
}

test("names are layers of a kind, numbers in their order", () => {
  const layers = layersOf(["weights/conv10.weight", "gradients/conv2.weight", "weights/conv2.weight", "act/1", "loss"]);
  expect(layers.weights.map((layer) => layer.title)).toEqual(["conv2.weight", "conv10.weight"]);
  expect(layers.gradients).toEqual([{ name: "gradients/conv2.weight", title: "conv2.weight" }]);
  expect(layers.others.map((layer) => layer.name)).toEqual(["act/1", "loss"]);
  expect(sameLayer(layers.weights, "gradients/conv10.weight")).toBe("weights/conv10.weight");
  expect(sameLayer(layers.gradients, "weights/conv10.weight")).toBe("gradients/conv2.weight");
  expect(sameLayer([], "weights/conv10.weight")).toBeNull();
});

test("the extent is that of all values, and never without a width", () => {
  expect(extentOf([histogram(-1, 2, [1]), histogram(0, 5, [1]), histogram(-9, 9, [])])).toEqual([-1, 5]);
  expect(extentOf([histogram(2, 2, [7])])).toEqual([1.8, 2.2]);
  expect(extentOf([histogram(0, 0, [7])])).toEqual([-1e-6, 1e-6]);
  expect(extentOf([])).toEqual([0, 1]);
});

test("what lies far outside is not drawn", () => {
  const far = histogram(-100, 100, [1, ...new Array(98).fill(0), 50_000, 50_000, ...new Array(99).fill(0), 1]);
  const [low, high] = focusOf([far]);
  expect([low, high].map((end) => Math.abs(end) < 2)).toEqual([true, true]);
  expect(focusOf([histogram(0, 4, [10, 20, 10, 5])])).toEqual([0, 4]);
  const usual = Array.from({ length: 20 }, (_, step) => histogram(-1, 1, [5, 5], step));
  expect(focusOf([...usual, histogram(-50, 50, [5, 5], 20)]).map((end) => Math.abs(end) <= 1)).toEqual([true, true]);
  expect(focusOf([])).toEqual([0, 1]);
  expect(focusOf([histogram(2, 2, [7])])).toEqual([1.8, 2.2]);
  expect(rebinned(far, [-2, 2], 2).reduce((sum, count) => sum + count)).toBeCloseTo(100_000);
});

test("few values are drawn in few bins", () => {
  const of = (counts: number[]) => numBinsOf([histogram(0, 1, counts)]);
  expect([of([]), of([100]), of([3000, 5000]), of([1e9])]).toEqual([16, 16, 60, 80]);
});

test("a matrix is shown first", () => {
  expect(firstLayer(layersOf(["gradients/a", "weights/0.bias", "weights/0.weight"]))).toBe("weights/0.weight");
  expect(firstLayer(layersOf(["loss", "gradients/a"]))).toBe("gradients/a");
  expect(firstLayer(layersOf([]))).toBeNull();
});

test("other bins hold the same values", () => {
  expect(rebinned(histogram(0, 4, [1, 2, 3, 4]), [0, 4], 4)).toEqual([1, 2, 3, 4]);
  expect(rebinned(histogram(0, 4, [1, 2, 3, 4]), [0, 4], 2)).toEqual([3, 7]);
  expect(rebinned(histogram(0, 2, [4, 8]), [0, 4], 8)).toEqual([2, 2, 4, 4, 0, 0, 0, 0]);
  expect(rebinned(histogram(2, 2, [5]), [0, 4], 4)).toEqual([0, 0, 5, 0]);
  expect(rebinned(histogram(4, 4, [5]), [0, 4], 4)).toEqual([0, 0, 0, 5]);
  const odd = rebinned(histogram(-0.3, 1.7, [3, 0, 9, 1, 4]), [-1, 2], 7);
  expect(odd.reduce((sum, count) => sum + count)).toBeCloseTo(17);
});

test("ridges are of their own number of values, the highest is one", () => {
  const few = histogram(0, 2, [1, 1], 1);
  const many = histogram(0, 2, [300, 100], 2);
  const [first, last] = ridgesOf([few, many], [0, 2], 2, 10);
  expect(last?.heights).toEqual([1, 1 / 3]);
  expect(first?.heights[0]).toBeCloseTo(2 / 3);
  expect(ridgesOf([histogram(0, 0, [])], [0, 1], 3, 10)[0]?.heights).toEqual([0, 0, 0]);
});

test("of many some are chosen evenly, with both ends", () => {
  const all = Array.from({ length: 64 }, (_, at) => at);
  const some = evenly(all, 24);
  expect([some[0], some.at(-1), some.length]).toEqual([0, 63, 24]);
  expect(new Set(some).size).toBe(24);
  expect(evenly([1, 2, 3], 24)).toEqual([1, 2, 3]);
});

test("a value lies in one bin, the highest in the last", () => {
  const one = histogram(-1, 1, [5, 6]);
  expect(binAt(one, -0.5)).toEqual({ from: -1, until: 0, count: 5 });
  expect(binAt(one, 0)).toEqual({ from: 0, until: 1, count: 6 });
  expect(binAt(one, 1)?.count).toBe(6);
  expect(binAt(one, 1.01)).toBeNull();
  expect(binAt(histogram(3, 3, [9]), 3)).toEqual({ from: 3, until: 3, count: 9 });
});

test("quantiles are interpolated", () => {
  const one = histogram(0, 4, [10, 0, 10, 20]);
  expect(quantile(one, 0.5)).toBe(3);
  expect(quantile(one, 0.125)).toBe(0.5);
  expect(quantile(one, 1)).toBe(4);
  expect(quantile(one, 0)).toBe(0);
  expect(quantile(histogram(0, 0, []), 0.5)).toBeNull();
});

test("an axis has round numbers", () => {
  expect(ticksOf([-0.31, 0.29], 6)).toEqual([-0.3, -0.2, -0.1, 0, 0.1, 0.2]);
  expect(ticksOf([0, 1], 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticksOf([-1e-6, 1e-6], 4)).toEqual([-1e-6, -5e-7, 0, 5e-7, 1e-6]);
});
