/** Who sits where: the cells of a machine's slots, who is in the map at all, and what is excluded. */
import type { Schemas } from "../../api/client";

export type Machine = Schemas["MachineView"];
export type MachineSlot = Schemas["MachineSlot"];
export type Holder = Schemas["SlotHolder"];
export type ColourBy = "job" | "queue";

/**
 * `held`: by jobs that one sees. `others`: by those that one does not. `excluded`: by people, and free. `closed`: free,
 * on a machine that is drained or away.
 */
export type Seat = "held" | "others" | "free" | "closed" | "excluded";

export function seatOf(machine: Machine, slot: MachineSlot): Seat {
  if (slot.holders.length > 0) return "held";
  if (slot.taken) return "others";
  if (slot.excluded !== null) return "excluded";
  return machine.drained_by === null && machine.state !== "away" ? "free" : "closed";
}

/** How many slots of a machine count: all but those that are excluded, and free already. */
export function numSlots(machine: Machine): number {
  return machine.slots.filter((slot) => slot.taken || slot.excluded === null).length;
}

export function colourOf(holder: Holder, by: ColourBy): number {
  return by === "job" ? holder.colour : holder.queue_colour;
}

export interface Entry {
  key: string;
  name: string;
  colour: number;
  /** Slots, a shared one counted by its part. */
  slots: number;
}

/** Everybody who holds slots, the most first; and how many slots those hold whom one does not see. */
export function whoIsThere(machines: readonly Machine[], by: ColourBy): { entries: Entry[]; others: number } {
  const found = new Map<string, Entry>();
  let others = 0;
  for (const slot of machines.flatMap((machine) => machine.slots)) {
    if (slot.taken && slot.holders.length === 0) others += 1;
    for (const holder of slot.holders) {
      const key = by === "job" ? holder.job_id : holder.queue;
      const entry = found.get(key) ?? {
        key,
        name: by === "job" ? holder.job_name : holder.queue,
        colour: colourOf(holder, by),
        slots: 0,
      };
      found.set(key, { ...entry, slots: entry.slots + 1 / slot.holders.length });
    }
  }
  return { entries: [...found.values()].sort((one, other) => other.slots - one.slots), others };
}

export interface Exclusion {
  /** The numbers of its slots; none: the whole machine. */
  slots: readonly number[];
  by: string;
  at: number;
  because: string;
}

/** What is excluded of a machine: slots that were excluded at once for one reason are one. */
export function exclusionsOf(machine: Machine): Exclusion[] {
  if (machine.excluded !== null) return [{ slots: [], ...machine.excluded }];
  const found = new Map<string, Exclusion>();
  for (const { slot, excluded } of machine.slots) {
    if (excluded === null) continue;
    const key = JSON.stringify([excluded.by, excluded.at, excluded.because]);
    found.set(key, { ...excluded, slots: [...(found.get(key)?.slots ?? []), slot] });
  }
  return [...found.values()];
}
