/** What is true of a job, worked out from what the server says of it. */
import type { Schemas } from "../../api/client";

export type Job = Schemas["Job"];

const OVER: readonly string[] = ["completed", "failed", "stopped"];

export function isOver(job: Job): boolean {
  return OVER.includes(job.state);
}

export function kindOf(job: Job): "training" | "fixed" | "trial" | "endpoint" {
  if (job.spec.endpoint != null) return "endpoint";
  if (job.spec.trial != null) return "trial";
  return job.spec.fixed ? "fixed" : "training";
}

/** `4` or `1–8`. */
export function rangeOf(least: number, most: number): string {
  return least === most ? `${most}` : `${least}–${most}`;
}

/** The least and the most slots that a job may have. */
export function slotsOf(job: Job): [number, number] {
  const each = job.spec.slots_per_task ?? 1;
  return [job.min_tasks * each, job.max_tasks * each];
}

/** How far it is, 0 to 1; null if it has told nothing. */
export function fractionOf(job: Job): number | null {
  const progress = job.progress;
  if (progress == null || progress.num_steps <= 0) return null;
  return Math.min(1, progress.step / progress.num_steps);
}

/** A sentence of the server about a job, without the job's name before it: for the page of that job. */
export function ofItself(message: string, id: string, name: string): string {
  const prefix = `${id} (${name})`;
  return message.startsWith(prefix) ? message.slice(prefix.length).replace(/^:? /, "") : message;
}

/** Tags as they are typed: one in a line. */
export function linesOfTags(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");
}

/** What lines of tags change: those that are gone are null. */
export function changedTags(before: Readonly<Record<string, string>>, lines: string): Record<string, string | null> {
  const typed = new Map<string, string>();
  for (const line of lines.split("\n")) {
    const [name = "", ...rest] = line.trim().split("=");
    if (name.trim() !== "") typed.set(name.trim(), rest.join("=").trim());
  }
  const changes: Record<string, string | null> = {};
  for (const [name, value] of typed) if (before[name] !== value) changes[name] = value;
  for (const name of Object.keys(before)) if (!typed.has(name)) changes[name] = null;
  return changes;
}

/** Every field of a job's submission as words, by its path: `tags.lr`. What is not set is left out. */
export function flatten(value: unknown, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  if (value === null || value === undefined) return found;
  if (Array.isArray(value)) {
    if (value.length > 0)
      found.set(path, value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" "));
    return found;
  }
  if (typeof value === "object") {
    for (const [name, part] of Object.entries(value)) {
      for (const [at, words] of flatten(part, path === "" ? name : `${path}.${name}`)) found.set(at, words);
    }
    return found;
  }
  found.set(path, String(value));
  return found;
}

export interface Differing {
  field: string;
  mine: string | null;
  theirs: string | null;
}

/** The fields in which two submissions differ, by name. */
export function differences(mine: unknown, theirs: unknown): Differing[] {
  const [one, other] = [flatten(mine), flatten(theirs)];
  return [...new Set([...one.keys(), ...other.keys()])]
    .sort()
    .filter((field) => one.get(field) !== other.get(field))
    .map((field) => ({ field, mine: one.get(field) ?? null, theirs: other.get(field) ?? null }));
}
