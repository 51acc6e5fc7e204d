/** What somebody has typed into the form of a profile, as a change of the endpoint. */

import type { Schemas } from "../../api/client";
import { ENDPOINT } from "../../api/constraints";
import { violation } from "../../api/violation";
import type { EndpointView } from "./shown";

export type Patch = Schemas["EndpointPatch"];
export type Field = Exclude<keyof Patch, "shared_with">;
export type Typed = Readonly<Partial<Record<Field, string | number | boolean>>>;

/** Fields that may have no value: then there is no limit. */
export const OPTIONAL: readonly Field[] = ["max_rate", "max_concurrent", "max_request_s"];
const TEXTS: readonly Field[] = ["queue", "description"];

export const GROUPS = {
  size: ["kernel_min", "kernel_max", "priority", "queue", "release_delay_s", "schedule_interval_s"],
  batches: ["batch_size", "pipe_size", "idempotent"],
  times: ["latency_objective_s", "execution_timeout_s", "stream_timeout_s", "cold_start_timeout_s"],
  limits: ["max_queue", "max_body_bytes", "max_rate", "max_concurrent", "max_request_s"],
  people: ["description"],
} as const satisfies Record<string, readonly Field[]>;

/** A field as it is typed. */
export function typedOf(endpoint: EndpointView, field: Field): string | number | boolean {
  return endpoint[field] ?? "";
}

/** The fields that are otherwise than they were when the form was opened, as the server takes them. */
export function changesOf(base: EndpointView, typed: Typed): Patch {
  const changes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(typed)) {
    const field = name as Field;
    if (value === undefined || value === typedOf(base, field)) continue;
    changes[field] = value === "" && !TEXTS.includes(field) ? null : value;
  }
  return changes as Patch;
}

/** What is wrong with what was typed, by field. */
export function problemsOf(typed: Typed): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  for (const [name, value] of Object.entries(typed)) {
    const field = name as Field;
    const isEmpty = value === "" && OPTIONAL.includes(field);
    const wrong = isEmpty
      ? null
      : violation(ENDPOINT[field], value === "" && !TEXTS.includes(field) ? Number.NaN : value);
    if (wrong !== null) found[field] = wrong;
  }
  return found;
}

/** The least and the most of a field, if it is a number. */
export function boundsOf(field: Field): { low: number; high: number; whole: boolean } | null {
  const { type, minimum, exclusiveMinimum, maximum } = ENDPOINT[field] ?? {};
  if ((type !== "integer" && type !== "number") || maximum === undefined) return null;
  return { low: minimum ?? exclusiveMinimum ?? 0, high: maximum, whole: type === "integer" };
}

/** The fields that somebody else has set otherwise since the form was opened. */
export function setElsewhere(base: EndpointView, now: EndpointView, fields: readonly Field[]): Field[] {
  return fields.filter((field) => base[field] !== now[field]);
}
