import { expect, test } from "vitest";
import { filterOf, outcomeOf } from "./outcome";

test("tells outcomes apart by their status", () => {
  expect([200, 204, 302, 399].map(outcomeOf)).toEqual(["done", "done", "done", "done"]);
  expect([400, 401, 412, 499].map(outcomeOf)).toEqual(["refused", "refused", "refused", "refused"]);
  expect([500, 503].map(outcomeOf)).toEqual(["failed", "failed"]);
});

test("asks for what stands in the address", () => {
  const get = (address: string) => {
    const search = new URLSearchParams(address);
    return (name: string) => search.get(name);
  };
  expect(filterOf(get(""))).toEqual({ who: null, q: null, outcome: null });
  expect(filterOf(get("who=ada&q=%20log%20on&outcome=refused"))).toEqual({
    who: "ada",
    q: "log on",
    outcome: "refused",
  });
  expect(filterOf(get("outcome=perhaps&q=++")).outcome).toBeNull();
});
