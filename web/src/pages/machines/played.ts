/** Machines for tests. */
import type { MachineFacts } from "./hardware";
import type { Holder, Machine, MachineSlot } from "./map";

export function holder(job: string, colour: number, queue = "default"): Holder {
  return { job_id: job, job_name: `name of ${job}`, queue, colour, queue_colour: 5 };
}

export function slot(number: number, ...holders: Holder[]): MachineSlot {
  return {
    node_id: "gpu1",
    slot: number,
    taken: holders.length > 0,
    job_id: holders[0]?.job_id ?? null,
    task_id: null,
    job_name: null,
    sharers: [],
    holders,
    excluded: null,
  };
}

export function facts(some: Partial<MachineFacts>): MachineFacts {
  return {
    cpu_model: "",
    num_cpus: 8,
    load: null,
    memory_bytes: null,
    memory_used_bytes: null,
    booted_at: null,
    devices: [],
    trouble: "",
    measured_at: 1000,
    age_s: 5,
    ...some,
  };
}

export function machine(some: Partial<Machine>): Machine {
  return {
    name: "gpu1",
    state: "in use",
    drained_by: null,
    drained_at: null,
    excluded: null,
    labels: {},
    given_labels: {},
    num_gpus: 8,
    num_cpus: 8,
    walls: [],
    missing_walls: [],
    files: "shared",
    num_taken: 0,
    num_excluded: 0,
    facts: null,
    slots: [],
    ...some,
  };
}
