import { expect, test } from "vitest";
import { fits, placeOf } from "./found";

test("leads to the page of what was found, whatever it is called", () => {
  expect(placeOf({ kind: "job", id: "job-7" })).toBe("/jobs/job-7");
  expect(placeOf({ kind: "template", id: "resnet" })).toBe("/models/templates/resnet");
  expect(placeOf({ kind: "user", id: "ada" })).toBe("/people/ada");
  expect(placeOf({ kind: "queue", id: "a/../b?c#d" })).toBe("/queues/a%2F..%2Fb%3Fc%23d");
});

test("fits by the beginnings of words, in any order", () => {
  expect(fits("Data sets", "set da")).toBe(true);
  expect(fits("Submit a job", "job")).toBe(true);
  expect(fits("Queues", "jobs")).toBe(false);
  expect(fits("Queues", "")).toBe(true);
});
