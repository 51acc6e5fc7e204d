/** The events that are listed: the newest first, each once, whichever way it came. */
import type { ServerEvent } from "../../api/live";

export type Kind = ServerEvent["kind"];

export interface Filter {
  kinds: readonly Kind[];
  job: string | null;
}

/** Events that only programs read; people see them if they ask for the kind. */
const FOR_PROGRAMS: readonly Kind[] = [
  "algorithm.changed",
  "dataset.changed",
  "endpoint.changed",
  "environment.changed",
  "model.changed",
  "search.changed",
  "share.changed",
  "slots.changed",
  "template.changed",
  "upload.changed",
];

/** Whether an event that has just come belongs into the list. */
export function fits(event: ServerEvent, filter: Filter): boolean {
  if (filter.job !== null && event.job_id !== filter.job) return false;
  return filter.kinds.length > 0 ? filter.kinds.includes(event.kind) : !FOR_PROGRAMS.includes(event.kind);
}

export function merge(...parts: (readonly ServerEvent[])[]): ServerEvent[] {
  const bySeq = new Map(parts.flat().map((event) => [event.seq, event]));
  return [...bySeq.values()].sort((one, other) => other.seq - one.seq);
}

/** Whether every word of a text stands somewhere in the event. */
export function holds(event: ServerEvent, text: string): boolean {
  const all = `${event.message} ${event.kind} ${event.job_id ?? ""} ${event.task_id ?? ""}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/** What an event carries besides its sentence, in lines. */
export function dataOf(event: ServerEvent): [name: string, value: string][] {
  return Object.entries(event.data ?? {}).map(([name, value]) => [name, value === null ? "–" : String(value)]);
}
