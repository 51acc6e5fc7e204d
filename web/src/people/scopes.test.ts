import { expect, test } from "vitest";
import { DAYS, endsAfter, scopesOf } from "./scopes";

test("says what a token may do", () => {
  expect(scopesOf({ scopes: null, endpoints: null })).toBe("everything that the owner may");
  expect(scopesOf({ scopes: ["jobs:read", "infer"], endpoints: null })).toBe("see jobs and searches; ask endpoints");
  expect(scopesOf({ scopes: ["infer"], endpoints: ["digits", "mnist"] })).toBe("ask digits, mnist");
});

test("no token outlives a year", () => {
  for (const days of DAYS) expect(endsAfter(days, 1000.5)).toBeLessThanOrEqual(1000.5 + 366 * 86_400);
});
