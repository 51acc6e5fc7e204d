/** Marks that lie too near to each other to be pressed one by one are one, with a number. */
import type { Schemas } from "../api/client";

export type SlotMark = Schemas["SlotMark"];

export interface Cluster {
  /** Pixels from the left of the plot. */
  left: number;
  marks: SlotMark[];
}

/** Put marks, in the order of time, together that are nearer than `apart` pixels; those outside are left out. */
export function clustersOf(
  marks: readonly SlotMark[],
  positionOf: (at: number) => number,
  width: number,
  apart: number,
): Cluster[] {
  const clusters: Cluster[] = [];
  for (const mark of [...marks].sort((one, other) => one.at - other.at || one.seq - other.seq)) {
    const left = positionOf(mark.at);
    if (left < 0 || left > width) continue;
    const newest = clusters.at(-1);
    if (newest !== undefined && left - newest.left < apart) newest.marks.push(mark);
    else clusters.push({ left, marks: [mark] });
  }
  return clusters;
}
