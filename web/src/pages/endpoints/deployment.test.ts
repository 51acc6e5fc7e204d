import { expect, test } from "vitest";
import { deployCommand, deploymentOf } from "./deployment";

const wish = { name: "digits", job: "job-3", file: "", min: 0, max: 4, slots: null, queue: null, traffic: 100 };

test("a job is deployed by its id, and what is not said stays", () => {
  expect(deploymentOf(wish, null)).toEqual({ job: "job-3", kernel_min: 0, kernel_max: 4 });
  expect(deployCommand("job-3", wish)).toBe("pliant deploy job-3 --name digits --min 0 --max 4");
});

test("a folder that tries with ten percent says so, and its name is no option", () => {
  const canary = { ...wish, file: " model.onnx ", min: null, max: null, traffic: 10 };
  expect(deploymentOf(canary, "-rf $x")).toEqual({ source: "-rf $x", file: "model.onnx", traffic: 10 });
  expect(deployCommand("-rf $x", canary)).toBe("pliant deploy './-rf $x' --name digits --file model.onnx --traffic 10");
});
