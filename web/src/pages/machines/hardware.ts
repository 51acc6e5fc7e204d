/** What a machine is and how it is just now, put together from what its agent told. */
import { text } from "../../text";
import type { Machine } from "./map";

export type MachineFacts = NonNullable<Machine["facts"]>;
export type Device = MachineFacts["devices"][number];

const words = text.machines;
/** A machine tells every ten seconds; one that has not for so long has something that hangs. */
const SILENT_S = 45;

/** What it has: `8 × NVIDIA H200`, or how many GPUs or processors. */
export function hardwareOf(machine: Machine): string {
  const models = new Map<string, number>();
  for (const { model } of machine.facts?.devices ?? []) models.set(model, (models.get(model) ?? 0) + 1);
  if (models.size > 0) return [...models].map(([model, number]) => words.times(String(number), model)).join(", ");
  return machine.num_gpus > 0 ? words.gpus(machine.num_gpus) : words.cpus(machine.num_cpus);
}

export interface Part {
  used: number;
  total: number;
}

/** How much of something is used, if both numbers are known. */
export function partOf(used: number | null | undefined, total: number | null | undefined): Part | null {
  return used == null || total == null || total <= 0 ? null : { used, total };
}

/** The memory of all GPUs that tell theirs. */
export function gpuMemoryOf(facts: MachineFacts): Part | null {
  const parts = facts.devices.flatMap((device) => partOf(device.memory_used_bytes, device.memory_bytes) ?? []);
  if (parts.length === 0) return null;
  return {
    used: parts.reduce((sum, part) => sum + part.used, 0),
    total: parts.reduce((sum, part) => sum + part.total, 0),
  };
}

/** The mean part of the time in which GPUs computed, 0 to 1. */
export function busyOf(facts: MachineFacts): number | null {
  const known = facts.devices.flatMap((device) => device.utilisation ?? []);
  return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0) / known.length;
}

/** The hottest GPU: its slot, and degrees Celsius. */
export function hottestOf(facts: MachineFacts): { slot: number; celsius: number } | null {
  let found: { slot: number; celsius: number } | null = null;
  for (const { slot, temperature_c: celsius } of facts.devices) {
    if (celsius != null && celsius > (found?.celsius ?? Number.NEGATIVE_INFINITY)) found = { slot, celsius };
  }
  return found;
}

export function deviceOf(machine: Machine, slot: number): Device | null {
  return machine.facts?.devices.find((device) => device.slot === slot) ?? null;
}

/** Whether the newest facts are so old that something hangs. */
export function isSilent(facts: MachineFacts): boolean {
  return facts.age_s > SILENT_S;
}
