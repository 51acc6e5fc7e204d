import { expect, test } from "vitest";
import { inside } from "./target";

test.each([
  ["/jobs/job-3?tab=logs", "/jobs/job-3?tab=logs"],
  [null, "/"],
  ["", "/"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["/\t/evil.example", "/"],
  ["https://evil.example/", "/"],
  ["javascript:alert(1)", "/"],
  ["/x/..//evil.example", "/"],
  ["/logon?to=/logon", "/"],
])("after log-on, %s leads to %s", (to, path) => {
  expect(inside(to)).toBe(path);
});
