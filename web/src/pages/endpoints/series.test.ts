import { expect, test } from "vitest";
import { column, columnsOf } from "./series";

type Sample = [at: number, rate: number, latency?: number];

/** A version that began at 0. */
function noted(version: number, samples: readonly Sample[], until: number | null = null) {
  const points = samples.flatMap(([at, rate, latency]) => [
    { name: "rate", step: at, at, value: rate },
    ...(latency === undefined ? [] : [{ name: "latency", step: at, at, value: latency }]),
  ]);
  return { version, points, until };
}

test("points that follow each other are joined", () => {
  const columns = columnsOf([
    noted(1, [
      [10, 2, 0.1],
      [20, 3, 0.2],
    ]),
  ]);
  expect(columns).toEqual({ x: [10, 20], values: { "1 rate": [2, 3], "1 latency": [0.1, 0.2] } });
  expect(column(columns, "2 rate")).toEqual([null, null]);
});

test("an idle version stays at zero until somebody asks again, and has no latency", () => {
  const { x, values } = columnsOf([
    noted(1, [
      [10, 2, 0.1],
      [20, 0],
      [3600, 5, 0.3],
    ]),
  ]);
  expect(x).toEqual([10, 20, 3590, 3600]);
  expect(values["1 rate"]).toEqual([2, 0, 0, 5]);
  expect(values["1 latency"]).toEqual([0.1, null, 0.3, 0.3]);
});

test("it is idle until now", () => {
  const { x, values } = columnsOf([
    noted(
      1,
      [
        [10, 2, 0.1],
        [20, 0],
      ],
      900,
    ),
  ]);
  expect(x).toEqual([10, 20, 900]);
  expect(values["1 rate"]).toEqual([2, 0, 0]);
  expect(values["1 latency"]).toEqual([0.1, null, null]);
});

test("an old version has fewer points, each of a longer time", () => {
  const age = 30 * 86_400;
  const { x, values } = columnsOf([
    noted(
      1,
      [
        [age, 0],
        [age + 300, 2],
        [age + 3600, 4],
      ],
      age + 3700,
    ),
  ]);
  const last = age + 3600;
  expect(x).toEqual([age, age + 300, last - last / 8640, last]);
  expect(values["1 rate"]).toEqual([0, 2, 2, 4]);
});

test("the window begins with what was so then", () => {
  const idle = noted(
    1,
    [
      [10, 2],
      [20, 0],
    ],
    900,
  );
  expect(columnsOf([idle], 600)).toEqual({ x: [600, 900], values: { "1 rate": [0, 0] } });
  expect(columnsOf([idle], 5).x).toEqual([10, 20, 900]);
  expect(columnsOf([noted(1, [[1, 1]])], 5)).toEqual({ x: [], values: {} });
});

test("versions beside each other: a line goes on where the other has a point, a gap does as well", () => {
  const { x, values } = columnsOf([
    noted(1, [
      [10, 1, 0.1],
      [20, 0],
      [60, 1, 0.2],
    ]),
    noted(2, [
      [15, 4],
      [25, 4.5],
      [30, 5],
    ]),
  ]);
  expect(x).toEqual([10, 15, 20, 25, 30, 50, 60]);
  expect(values["1 rate"]).toEqual([1, undefined, 0, undefined, undefined, 0, 1]);
  expect(values["1 latency"]).toEqual([0.1, null, null, null, null, 0.2, 0.2]);
  expect(values["2 rate"]).toEqual([undefined, 4, undefined, 4.5, 5, undefined, undefined]);
});

test("what is no number is a gap", () => {
  expect(columnsOf([noted(1, [[10, Number.NaN]])]).values).toEqual({ "1 rate": [null] });
});
