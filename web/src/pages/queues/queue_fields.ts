/** A queue as it is typed, as it is sent, and in which of its fields two versions differ. */
import type { Schemas } from "../../api/client";
import type { Difference } from "../../components/Stale";
import { count, NONE } from "../../format/format";
import { text } from "../../text";

const words = text.queues;

export type Queue = Schemas["Queue"];
type QueuePatch = Schemas["QueuePatch"];

/** Everything of a queue that people say; texts that are empty stand for none. */
export interface QueueFields {
  name: string;
  resource_group: string;
  policy: Queue["policy"];
  preemption: boolean;
  weight: number | "";
  default_environment: string;
  run_as: string;
  max_tasks_per_job: number | "";
  open: boolean;
  description: string;
}

export function fieldsOf(queue: Queue | undefined, group = "all"): QueueFields {
  return {
    name: queue?.name ?? "",
    resource_group: queue?.resource_group ?? group,
    policy: queue?.policy ?? "fairshare",
    preemption: queue?.preemption ?? true,
    weight: queue?.weight ?? 1,
    default_environment: queue?.default_environment ?? "",
    run_as: queue?.run_as ?? "",
    max_tasks_per_job: queue?.max_tasks_per_job ?? "",
    open: queue?.open ?? true,
    description: queue?.description ?? "",
  };
}

/** What is sent to make a queue. */
export function requestOf(fields: QueueFields): Schemas["QueueRequest"] {
  return {
    ...fields,
    name: fields.name.trim(),
    weight: fields.weight === "" ? 1 : fields.weight,
    default_environment: fields.default_environment || null,
    run_as: fields.run_as.trim() || null,
    max_tasks_per_job: fields.max_tasks_per_job === "" ? null : fields.max_tasks_per_job,
  };
}

/** What is sent to change a queue: only what differs. */
export function patchOf(before: Queue, fields: QueueFields): QueuePatch {
  const { name: _, ...wanted } = requestOf(fields);
  const { name: __, ...had } = requestOf(fieldsOf(before));
  const changed = Object.entries(wanted).filter(([key, value]) => had[key as keyof typeof had] !== value);
  return Object.fromEntries(changed) as QueuePatch;
}

/** In what somebody else's version and one's own differ. */
export function differencesOf(theirs: Queue, mine: QueueFields): Difference[] {
  const wanted = { ...theirs, ...patchOf(theirs, mine) } as Queue;
  return Object.keys(patchOf(theirs, mine)).map((key) => ({
    label: words.fields[key] ?? key,
    theirs: sayField(theirs, key),
    mine: sayField(wanted, key),
  }));
}

/** One field of a queue in words. */
export function sayField(queue: Queue, field: string): string {
  const value = queue[field as keyof Queue];
  if (field === "policy") return words.policies[queue.policy] ?? queue.policy;
  if (field === "max_tasks_per_job") return value == null ? words.noLimit : count(Number(value));
  if (field === "run_as") return queue.run_as || words.usualUser;
  if (typeof value === "boolean") return value ? words.yes : words.no;
  if (typeof value === "number") return count(value);
  return value || NONE;
}
