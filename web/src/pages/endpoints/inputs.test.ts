import { expect, test } from "vitest";
import { exampleRequest, inputsOf, largest, layoutOf, numbersOf, outputsOf, shapeOf } from "./inputs";

const input = (...shape: number[]) => ({ name: "x", datatype: "FP32", shape });

test("metadata comes from people's code and may be anything", () => {
  expect(
    inputsOf({ inputs: [input(-1, 2), { name: 3 }, null, { name: "y", datatype: "FP32", shape: "big" }] }),
  ).toEqual([input(-1, 2)]);
  expect(inputsOf({ inputs: "<script>" })).toEqual([]);
  expect(inputsOf({})).toEqual([]);
});

test("an example has as many zeros as the shape, and one for what is open", () => {
  expect(exampleRequest([input(-1, 2)])).toEqual({
    inputs: [{ name: "x", shape: [1, 2], datatype: "FP32", data: [0, 0] }],
  });
  expect(exampleRequest([])).toBeNull();
});

test.each([
  [[-1, 1, 8, 8], { width: 8, height: 8, channels: 1, order: "chw", batched: true }, [1, 1, 8, 8]],
  [[3, -1, -1], { width: 28, height: 28, channels: 3, order: "chw", batched: false }, [3, 28, 28]],
  [[-1, 32, 32, 3], { width: 32, height: 32, channels: 3, order: "hwc", batched: true }, [1, 32, 32, 3]],
  [[28, 20], { width: 20, height: 28, channels: 1, order: "hwc", batched: false }, [28, 20]],
  [[64], { width: 8, height: 8, channels: 1, order: "chw", batched: false }, [64]],
  [[-1, 12, 10], { width: 10, height: 12, channels: 1, order: "hwc", batched: true }, [1, 12, 10]],
] as const)("a picture fits the shape %j", (shape, layout, sent) => {
  expect(layoutOf(input(...shape))).toEqual(layout);
  expect(shapeOf(input(...shape), layoutOf(input(...shape)))).toEqual(sent);
});

test("pixels become numbers in the order of the layout, what is seen through is white", () => {
  const rgba = new Uint8ClampedArray([255, 0, 0, 255, 0, 0, 255, 255, 9, 9, 9, 0]);
  const layout = { width: 3, height: 1, channels: 3, order: "chw", batched: false } as const;
  expect(numbersOf(rgba, layout, { scale: "byte", invert: false })).toEqual([255, 0, 255, 0, 0, 255, 0, 255, 255]);
  const rows = numbersOf(rgba, { ...layout, order: "hwc" }, { scale: "unit", invert: true });
  expect(rows).toEqual([0, 1, 1, 1, 1, 0, 0, 0, 0]);
});

test("of an answer the largest numbers are named", () => {
  const [output] =
    outputsOf('{"outputs": [{"name": "y", "shape": [1, 3], "data": [[0.1, 0.7, 0.2]]}, {"name": 1}]}') ?? [];
  expect(output?.name).toBe("y");
  expect(largest(output?.data ?? [], 2)).toEqual([
    { index: 1, value: 0.7 },
    { index: 2, value: 0.2 },
  ]);
  expect(largest(["a", "b"])).toEqual([]);
  expect(outputsOf("<html>")).toBeNull();
});
