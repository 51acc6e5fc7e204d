import { expect, test } from "vitest";
import { bestFirst, fits, placeOf } from "./found";

test("leads to the page of what was found, whatever it is called", () => {
  expect(placeOf({ kind: "job", id: "job-7" })).toBe("/jobs/job-7");
  expect(placeOf({ kind: "template", id: "resnet" })).toBe("/models/templates/resnet");
  expect(placeOf({ kind: "user", id: "ada" })).toBe("/people/ada");
  expect(placeOf({ kind: "queue", id: "a/../b?c#d" })).toBe("/queues/a%2F..%2Fb%3Fc%23d");
});

test("fits by parts of words, in any order", () => {
  expect(fits("Data sets", "set da")).toBe(true);
  expect(fits("Submit a job", "job")).toBe(true);
  expect(fits("Queues", "jobs")).toBe(false);
  expect(fits("Queues", "")).toBe(true);
});

test("what begins like the query comes first, and equals stay in order", () => {
  const items = ["Searches", "Data sets", "Audit", "Your account", "Usage"].map((label) => ({ label }));
  expect(bestFirst(items, "a").map(({ label }) => label)).toEqual([
    "Audit",
    "Your account",
    "Searches",
    "Data sets",
    "Usage",
  ]);
  expect(bestFirst(items, "")).toEqual(items);
});
