import { expect, test } from "vitest";
import { waitBefore } from "./backoff";

test("waits double up to 15 s, and are shortened by chance", () => {
  expect([0, 1, 2, 3, 4, 50].map((attempt) => waitBefore(attempt, 0))).toEqual([
    1000, 2000, 4000, 8000, 15_000, 15_000,
  ]);
  expect(waitBefore(3, 1)).toBe(4000);
});
