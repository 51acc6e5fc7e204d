import { expect, test } from "vitest";
import { differencesOf, fieldsOf, patchOf, type Queue, requestOf } from "./queue_fields";

const QUEUE: Queue = {
  name: "research",
  resource_group: "gpus",
  policy: "fairshare",
  preemption: true,
  weight: 2,
  default_environment: null,
  run_as: null,
  max_tasks_per_job: null,
  open: true,
  description: "",
  owner: "ada",
};

test("nothing is sent of what was not touched", () => {
  expect(patchOf(QUEUE, fieldsOf(QUEUE))).toEqual({});
});

test("only what differs is sent, and an emptied field as none", () => {
  expect(patchOf(QUEUE, { ...fieldsOf(QUEUE), weight: 3, open: false })).toEqual({ weight: 3, open: false });
  expect(patchOf({ ...QUEUE, max_tasks_per_job: 4 }, { ...fieldsOf(QUEUE), max_tasks_per_job: "" })).toEqual({
    max_tasks_per_job: null,
  });
});

test("a new queue stands over the group that it was asked for from", () => {
  expect(requestOf({ ...fieldsOf(undefined, "gpus"), name: " night " })).toMatchObject({
    name: "night",
    resource_group: "gpus",
    run_as: null,
  });
});

test("two versions are told apart in words", () => {
  const mine = { ...fieldsOf(QUEUE), weight: 3, policy: "fifo" as const };
  expect(differencesOf({ ...QUEUE, weight: 5 }, mine)).toEqual([
    { label: "Policy", theirs: "fair share", mine: "first come" },
    { label: "Weight", theirs: "5", mine: "3" },
  ]);
});
