import { expect, test } from "vitest";
import { indexAt, layersOf, type SlotChart, stackOf } from "./layers";

const CHART: SlotChart = {
  from: 100,
  until: 130,
  now: 130,
  width_s: 10,
  exact: false,
  times: [100, 110, 120],
  keys: [
    { id: "job-1", name: "first", kind: "job", colour: 0, slot_seconds: 160 },
    { id: "job-2", name: "second", kind: "job", colour: 9, slot_seconds: 80 },
  ],
  values: [
    [8, 4, 4],
    [0, 4, 4],
  ],
  rest: { num_keys: 0, values: [0, 0, 0] },
  others: [0, 0, 1],
  capacity: [8, 8, 9],
  gaps: [],
  last_seq: 7,
};

const layers = layersOf(CHART, (count) => `${count} more`, "others");

test("layers are those that hold something, others last", () => {
  expect(layers.map((layer) => [layer.name, layer.colour])).toEqual([
    ["first", 0],
    ["second", 9],
    ["others", null],
  ]);
});

test("a layer is drawn as the sum of all up to it, and the last value holds until the end", () => {
  const stack = stackOf(CHART, layers, new Set(), 128);
  expect(stack.x).toEqual([100, 110, 120, 128]);
  expect(stack.sums).toEqual([
    [8, 4, 4, 4],
    [8, 8, 8, 8],
    [8, 8, 9, 9],
  ]);
  expect(stack.capacity).toEqual([8, 8, 9, 9]);
});

test("without a hidden layer the others sink", () => {
  const stack = stackOf(CHART, layers, new Set(["job job-1"]), 130);
  expect(stack.layers.map((layer) => layer.id)).toEqual(["job-2", ""]);
  expect(stack.sums[0]).toEqual([0, 4, 4, 4]);
});

test("a chart of no time is empty, and stays drawable", () => {
  const empty = { ...CHART, times: [], values: [[], []], rest: { num_keys: 0, values: [] }, others: [], capacity: [] };
  expect(stackOf(empty, layersOf(empty, String, ""), new Set(), 130)).toEqual({
    x: [130],
    layers: [],
    sums: [],
    capacity: [],
  });
});

test.each([
  [99, 0],
  [100, 0],
  [109.9, 0],
  [110, 1],
  [500, 2],
])("at %s the value number %s holds", (at, index) => {
  expect(indexAt(CHART.times, at)).toBe(index);
});
