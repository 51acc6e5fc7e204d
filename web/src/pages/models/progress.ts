import type { Schemas } from "../../api/client";

type Progress = Schemas["Progress"];

/** How much of a training is done, 0 to 1; null if nobody knows. */
export function shareOf(progress: Progress | null): number | null {
  if (progress === null || progress.num_steps <= 0) return null;
  return Math.min(1, progress.step / progress.num_steps);
}

/** The epoch that is being computed, counted from 1. */
export function epochOf(progress: Progress): number {
  return Math.min(progress.num_epochs, progress.epoch + 1);
}
