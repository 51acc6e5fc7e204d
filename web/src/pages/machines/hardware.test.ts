import { expect, test } from "vitest";
import { busyOf, type Device, deviceOf, gpuMemoryOf, hardwareOf, hottestOf, isSilent, partOf } from "./hardware";
import { facts, machine } from "./played";

const H200: Device = {
  slot: 0,
  model: "NVIDIA H200",
  memory_bytes: 150e9,
  memory_used_bytes: 30e9,
  utilisation: 0.5,
  temperature_c: 48,
};

function gpus(...devices: Device[]) {
  return facts({ devices });
}

test("a machine is its GPUs by their models, or its processors while it has told of none", () => {
  const h200 = [0, 1, 2].map((slot) => ({ ...H200, slot }));
  const mixed = gpus(...h200, { slot: 3, model: "NVIDIA A100" });
  expect(hardwareOf(machine({ facts: mixed }))).toBe("3 × NVIDIA H200, 1 × NVIDIA A100");
  expect(hardwareOf(machine({ facts: null, num_gpus: 8 }))).toBe("8 GPUs");
  expect(hardwareOf(machine({ facts: facts({}), num_gpus: 0, num_cpus: 1 }))).toBe("1 CPU");
});

test("memory of GPUs is added up, of those that tell it", () => {
  expect(gpuMemoryOf(gpus(H200, { ...H200, slot: 1 }, { slot: 2, model: "MIG" }))).toEqual({
    used: 60e9,
    total: 300e9,
  });
  expect(gpuMemoryOf(gpus({ slot: 0, model: "MIG" }))).toBeNull();
  expect(gpuMemoryOf(facts({}))).toBeNull();
});

test("a part is known if both numbers are, and there is something to have a part of", () => {
  expect(partOf(1, 4)).toEqual({ used: 1, total: 4 });
  expect(partOf(0, 4)).toEqual({ used: 0, total: 4 });
  expect([partOf(null, 4), partOf(1, undefined), partOf(0, 0)]).toEqual([null, null, null]);
});

test("GPUs are as busy as they are on the mean, an idle one is one of them", () => {
  expect(busyOf(gpus(H200, { ...H200, slot: 1, utilisation: 0 }, { slot: 2, model: "MIG", utilisation: null }))).toBe(
    0.25,
  );
  expect(busyOf(facts({}))).toBeNull();
});

test("the hottest GPU is named by its slot", () => {
  expect(hottestOf(gpus({ ...H200, temperature_c: 0 }, { ...H200, slot: 5, temperature_c: 71 }))).toEqual({
    slot: 5,
    celsius: 71,
  });
  expect(hottestOf(gpus({ slot: 0, model: "MIG" }))).toBeNull();
});

test("the GPU of a slot is found by its number, not by its place", () => {
  const here = machine({ facts: gpus({ ...H200, slot: 4 }) });
  expect(deviceOf(here, 4)?.model).toBe("NVIDIA H200");
  expect(deviceOf(here, 0)).toBeNull();
  expect(deviceOf(machine({ facts: null }), 0)).toBeNull();
});

test("a machine that has not told for a while is silent", () => {
  expect([facts({ age_s: 11 }), facts({ age_s: 50 })].map(isSilent)).toEqual([false, true]);
});
