import { expect, test } from "vitest";
import { limitsOf, rulesOf, sameLimits } from "./rules";

const RULES = [
  { material: "checkpoints", max_age_s: 7 * 86_400, max_bytes: 50_000_000_000 },
  { material: "logs", max_age_s: 100_000, max_bytes: 1_234_567_891 },
] as const;

test("shows rules as days and gigabytes, and no rule as no limit", () => {
  const limits = limitsOf(RULES);
  expect(limits.checkpoints).toEqual({ days: 7, gigabytes: 50 });
  expect(limits.logs).toEqual({ days: 1.15741, gigabytes: 1.23457 });
  expect(limits.audit).toEqual({ days: "", gigabytes: "" });
});

test("sends what was not touched as it was", () => {
  const limits = limitsOf(RULES);
  expect(rulesOf(limits, RULES)).toEqual([
    { material: "logs", max_age_days: 100_000 / 86_400, max_bytes: 1_234_567_891 },
    { material: "checkpoints", max_age_days: 7, max_bytes: 50_000_000_000 },
  ]);
});

test("sends what was set, and no rule where there is no limit any more", () => {
  const limits = {
    ...limitsOf(RULES),
    checkpoints: { days: "", gigabytes: "" },
    results: { days: 0, gigabytes: 0.5 },
    logs: { days: "", gigabytes: 2 },
  } as const;
  expect(rulesOf(limits, RULES)).toEqual([
    { material: "logs", max_age_days: null, max_bytes: 2_000_000_000 },
    { material: "results", max_age_days: 0, max_bytes: 500_000_000 },
  ]);
  expect(sameLimits(limits, limitsOf(RULES))).toBe(false);
  expect(sameLimits(limitsOf(RULES), limitsOf(RULES))).toBe(true);
});
