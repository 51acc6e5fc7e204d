/** The slots of one job over time, as steps: from its submission to its end, or to now. */
export interface Steps {
  x: number[];
  slots: number[];
}

interface Point {
  at: number;
  num_slots: number;
}

/** The steps of a job's slots; the last value holds until the end. */
export function stepsOf(points: readonly Point[], submittedAt: number, until: number): Steps {
  const x = [submittedAt];
  const slots = [0];
  for (const point of [...points].sort((one, other) => one.at - other.at)) {
    const at = Math.max(point.at, submittedAt);
    if (at === x.at(-1)) slots[slots.length - 1] = point.num_slots;
    else {
      x.push(at);
      slots.push(point.num_slots);
    }
  }
  const last = slots.at(-1) ?? 0;
  const end = Math.max(until, x.at(-1) ?? until);
  if (end > (x.at(-1) ?? 0)) {
    x.push(end);
    slots.push(last);
  }
  return { x, slots };
}
