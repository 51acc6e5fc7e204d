import { expect, test } from "vitest";
import { type GroupView, partsOf, type QueueView, sectionsOf } from "./bar";

function queue(fields: Partial<QueueView> = {}, name = "research", group = "gpus"): QueueView {
  return {
    queue: {
      name,
      resource_group: group,
      policy: "fairshare",
      preemption: true,
      weight: 1,
      default_environment: null,
      run_as: null,
      max_tasks_per_job: null,
      open: true,
      description: "",
      owner: "",
    },
    num_slots: 8,
    num_waiting: 0,
    num_running: 0,
    num_held: 0,
    num_deserved: 0,
    num_borrowed: 0,
    num_lent: 0,
    notes: [],
    revision: 1,
    ...fields,
  };
}

function group(name: string): GroupView {
  return {
    group: { name, description: "", owner: "", slots_per_host: null, hosts: {} },
    hosts: [],
    num_slots: 8,
    queues: [],
    notes: [],
    revision: 1,
  };
}

test("what is borrowed comes after the mark", () => {
  const parts = partsOf(queue({ num_held: 6, num_deserved: 5, num_borrowed: 1 }));
  expect(parts).toEqual({ own: 5 / 8, borrowed: 1 / 8, lent: 0, deserved: 5 / 8 });
});

test("what is lent lies between what it holds and the mark", () => {
  const parts = partsOf(queue({ num_held: 2, num_deserved: 3, num_lent: 1 }));
  expect(parts).toEqual({ own: 2 / 8, borrowed: 0, lent: 1 / 8, deserved: 3 / 8 });
});

test("the parts never come to more than the bar, also when the group has shrunk", () => {
  const parts = partsOf(queue({ num_slots: 2, num_held: 6, num_deserved: 2, num_borrowed: 4 }));
  expect(parts.own + parts.borrowed + parts.lent).toBe(1);
  expect(parts.deserved).toBeCloseTo(1 / 3);
});

test("a queue without slots has an empty bar, one without jobs no mark", () => {
  expect(partsOf(queue({ num_slots: 0 }))).toEqual({ own: 0, borrowed: 0, lent: 0, deserved: null });
  expect(partsOf(queue()).deserved).toBeNull();
});

test("groups with queues come first", () => {
  const sections = sectionsOf([group("empty"), group("gpus")], [queue()]);
  expect(sections.map((section) => [section.group.group.name, section.queues.length])).toEqual([
    ["gpus", 1],
    ["empty", 0],
  ]);
});
