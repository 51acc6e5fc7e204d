import { expect, test } from "vitest";
import { boundsOf, changesOf, GROUPS, problemsOf, setElsewhere } from "./profile";
import type { EndpointView } from "./shown";

const BASE = { kernel_min: 0, kernel_max: 4, max_rate: null, description: "old", queue: "default", idempotent: true };
const base = BASE as unknown as EndpointView;

test("only what is otherwise is sent, and what is emptied has no limit", () => {
  expect(changesOf(base, { kernel_min: 0, kernel_max: 8, max_rate: "", description: "" })).toEqual({
    kernel_max: 8,
    description: "",
  });
  const limited = { ...BASE, max_rate: 5 } as unknown as EndpointView;
  expect(changesOf(limited, { max_rate: "" })).toEqual({ max_rate: null });
});

test("what is out of bounds, or missing, is said before it is sent", () => {
  const problems = problemsOf({ kernel_max: 0, batch_size: 1.5, latency_objective_s: "", max_rate: "", kernel_min: 0 });
  expect(Object.keys(problems).sort()).toEqual(["batch_size", "kernel_max", "latency_objective_s"]);
});

test("every field is in one group, and every number has bounds", () => {
  const fields = Object.values(GROUPS).flat();
  expect(new Set(fields).size).toBe(fields.length);
  expect(boundsOf("kernel_max")).toEqual({ low: 1, high: 4096, whole: true });
  expect(boundsOf("queue")).toBeNull();
});

test("what others have set meanwhile is told apart", () => {
  const now = { ...BASE, kernel_max: 2 } as unknown as EndpointView;
  expect(setElsewhere(base, now, ["kernel_min", "kernel_max"])).toEqual(["kernel_max"]);
});
