import { expect, test } from "vitest";
import { callsOf } from "./calls";

const target = {
  name: "digits",
  httpUrl: "http://127.0.0.1:7312",
  grpcAddress: "127.0.0.1:7313",
  inputs: [{ name: "x", datatype: "FP32", shape: [-1, 2] }],
  raw: false,
};

test("each asks the endpoint with a token from a variable", () => {
  const calls = callsOf(target);
  expect(calls.curl).toContain("http://127.0.0.1:7312/v2/models/digits/infer");
  expect(calls.curl).toContain('Bearer $PLIANT_TOKEN"');
  expect(calls.Python).toContain('client.endpoints.predict("digits", {"x": np.zeros([1, 2], dtype="float32")})');
  expect(calls.tritonclient).toContain('triton.InferInput("x", [1, 2], "FP32")');
  expect(calls.CLI).toBe(
    `pliant predict digits --data '{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[0,0]}]}'`,
  );
});

test("a model of IBM's is asked by its own route, and by no other protocol", () => {
  const calls = callsOf({ ...target, raw: true });
  expect(calls.curl).toContain("/dlim/v1/inference/digits");
  expect(calls.tritonclient).toBeUndefined();
  expect(calls.CLI).toBe("pliant predict digits --raw --data @request.json");
});

test("a name of an input that is full of quotes stays a text", () => {
  const calls = callsOf({ ...target, inputs: [{ name: `"); import os; ('$(x)`, datatype: "FP32", shape: [1] }] });
  expect(calls.Python).toContain(String.raw`{"\"); import os; ('$(x)": np.zeros`);
  expect(calls.curl).toContain(`'"'"'`);
});
