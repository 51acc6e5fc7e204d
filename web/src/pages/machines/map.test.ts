import { expect, test } from "vitest";
import { type Holder, type Machine, type MachineSlot, seatOf, whoIsThere } from "./map";

function holder(job: string, colour: number, queue = "default"): Holder {
  return { job_id: job, job_name: `name of ${job}`, queue, colour, queue_colour: 5 };
}

function slot(number: number, ...holders: Holder[]): MachineSlot {
  return {
    node_id: "gpu1",
    slot: number,
    taken: holders.length > 0,
    job_id: holders[0]?.job_id ?? null,
    task_id: null,
    job_name: null,
    sharers: [],
    holders,
  };
}

function machine(slots: MachineSlot[], state: Machine["state"] = "in use"): Machine {
  return {
    name: "gpu1",
    state,
    drained_by: null,
    drained_at: null,
    labels: {},
    num_gpus: 8,
    num_cpus: 8,
    walls: [],
    missing_walls: [],
    num_taken: 0,
    slots,
  };
}

test("a slot is held, held by others, free or closed", () => {
  const held = slot(0, holder("job-1", 0));
  const others = { ...slot(1), taken: true };
  const here = machine([]);
  expect([held, others, slot(2)].map((one) => seatOf(here, one))).toEqual(["held", "others", "free"]);
  expect(seatOf(machine([], "drained"), slot(2))).toBe("closed");
  expect(seatOf(machine([], "draining"), held)).toBe("held");
});

test("slots are counted by job, a shared one by its parts, with the colour of the job", () => {
  const one = holder("job-1", 0);
  const two = holder("job-2", 9, "night");
  const { entries, others } = whoIsThere(
    [machine([slot(0, one), slot(1, one, two), { ...slot(2), taken: true }])],
    "job",
  );
  expect(entries.map((entry) => [entry.key, entry.slots, entry.colour])).toEqual([
    ["job-1", 1.5, 0],
    ["job-2", 0.5, 9],
  ]);
  expect(others).toBe(1);
});

test("queues are counted by their own colours", () => {
  const { entries } = whoIsThere([machine([slot(0, holder("job-1", 0)), slot(1, holder("job-2", 1))])], "queue");
  expect(entries).toEqual([{ key: "default", name: "default", colour: 5, slots: 2 }]);
});
