import type { Schemas } from "../../api/client";
import { changedTags, type Job, linesOfTags } from "./facts";

export type Patch = Schemas["JobPatch"];

export interface Form {
  priority: number;
  min_tasks: number;
  max_tasks: number;
  queue: string;
  tags: string;
}

/** What of a job a form shows. */
export function formOf(job: Job): Form {
  return {
    priority: job.priority,
    min_tasks: job.min_tasks,
    max_tasks: job.max_tasks,
    queue: job.queue ?? "default",
    tags: linesOfTags(job.tags ?? {}),
  };
}

/** What of a job a form changes; empty if nothing. */
export function patchOf(job: Job, form: Form): Patch {
  const before = formOf(job);
  const patch: Patch = {};
  if (form.priority !== before.priority) patch.priority = form.priority;
  if (form.min_tasks !== before.min_tasks) patch.min_tasks = form.min_tasks;
  if (form.max_tasks !== before.max_tasks) patch.max_tasks = form.max_tasks;
  if (form.queue !== before.queue) patch.queue = form.queue;
  const tags = changedTags(job.tags ?? {}, form.tags);
  if (Object.keys(tags).length > 0) patch.tags = tags;
  return patch;
}
