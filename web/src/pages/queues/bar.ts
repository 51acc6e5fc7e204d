/** How a queue stands, as the parts of a bar over the slots of its group. */
import type { Schemas } from "../../api/client";

export type QueueView = Schemas["QueueView"];
export type GroupView = Schemas["GroupView"];

export interface Parts {
  /** Shares of the whole bar, 0 to 1, from its start on: used of what it deserves, borrowed, lent. */
  own: number;
  borrowed: number;
  lent: number;
  /** Where the mark of what it deserves stands; null: nowhere, it wants nothing. */
  deserved: number | null;
}

/** Cut the bar of a queue. A queue that a group shrank under may hold more than the group has: then that is the whole. */
export function partsOf(queue: QueueView): Parts {
  const whole = Math.max(queue.num_slots, queue.num_held, queue.num_deserved);
  if (whole === 0) return { own: 0, borrowed: 0, lent: 0, deserved: null };
  return {
    own: (queue.num_held - queue.num_borrowed) / whole,
    borrowed: queue.num_borrowed / whole,
    lent: queue.num_lent / whole,
    deserved: queue.num_deserved === 0 && queue.num_held === 0 ? null : queue.num_deserved / whole,
  };
}

export interface Section {
  group: GroupView;
  queues: readonly QueueView[];
}

/** Every group with the queues over it; groups with queues first, in the order in which they came. */
export function sectionsOf(groups: readonly GroupView[], queues: readonly QueueView[]): Section[] {
  const sections = groups.map((group) => ({
    group,
    queues: queues.filter((queue) => queue.queue.resource_group === group.group.name),
  }));
  return [...sections].sort((one, other) => Number(other.queues.length > 0) - Number(one.queues.length > 0));
}
