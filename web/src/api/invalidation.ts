/**
 * Which answers an event makes out of date. Pure but for its timer: many events within a moment ask once.
 */
import { type Parameters, refetch } from "./cache";
import type { Schemas } from "./client";

type ServerEvent = Schemas["Event"];

const TOGETHER_MS = 250;
const TOGETHER_MANY_MS = 1_000;
const MANY = 50;

const STATES: readonly string[] = [
  "job.submitted",
  "job.state",
  "job.changed",
  "job.deleted",
  "job.held",
  "job.released",
];
const LISTS: readonly string[] = ["/v1/jobs", "/v1/jobs/rows", "/v1/overview"];
const POOL: readonly string[] = [
  "/v1/cluster",
  "/v1/queues",
  "/v1/queues/{name}",
  "/v1/machines",
  "/v1/resource-groups",
  "/v1/resource-groups/{name}",
  "/v1/queues/{name}/preview",
];
/** Kinds `noun.changed`, and the routes that show the noun. */
const NOUNS: Readonly<Record<string, string>> = {
  "dataset.changed": "/v1/datasets",
  "environment.changed": "/v1/environments",
  "template.changed": "/v1/templates",
  "model.changed": "/v1/models",
  "endpoint.changed": "/v1/endpoints",
  "search.changed": "/v1/searches",
  "algorithm.changed": "/v1/algorithms",
};
/** The trainings of models, which are jobs. */
const TRAININGS: readonly string[] = [
  "/v1/trainings",
  "/v1/models/{name}",
  "/v1/models/{name}/trainings",
  "/v1/models/{name}/trainings/{training}",
];
/** Of a job; its series, logs and results are asked for by whoever shows them, as often as they want. */
const OF_A_JOB: readonly string[] = ["/v1/jobs/{job_id}", "/v1/jobs/{job_id}/why"];

/** Routes that can be asked about one job: then they show what has happened to it. */
const ABOUT_A_JOB: readonly string[] = ["/v1/usage", "/v1/slots/marks", "/v1/events"];
const ENDS: readonly string[] = ["completed", "failed", "stopped"];

/** The routes that an event makes out of date, and the job whose alone they are; null: of all. */
export function outdatedBy(event: ServerEvent): {
  paths: ReadonlySet<string>;
  under: string | null;
  job: string | null;
} {
  const paths = new Set<string>();
  const job = event.job_id ?? null;
  if (job !== null) for (const path of OF_A_JOB) paths.add(path);
  if (STATES.includes(event.kind)) for (const path of [...LISTS, ...POOL, ...TRAININGS]) paths.add(path);
  if (event.kind === "decision" || event.kind.startsWith("task.") || (event.kind as string) === "slots.changed") {
    for (const path of [...LISTS, ...POOL]) paths.add(path);
  }
  if (event.kind === "queue.changed" || event.kind === "machine.changed") for (const path of POOL) paths.add(path);
  if (event.kind === "epoch.finished" || event.kind === "checkpoint.saved") paths.add("/v1/jobs/rows");
  if (event.kind === "checkpoint.saved") paths.add("/v1/jobs/{job_id}/checkpoints");
  if (event.kind === "job.state" && ENDS.includes(String(event.data?.to))) paths.add("/v1/jobs/{job_id}/files");
  if (event.kind === "model.saved" || event.kind === "task.left") paths.add("/v1/jobs/{job_id}/files");
  if (event.kind === "model.saved") for (const path of TRAININGS) paths.add(path);
  return { paths, under: NOUNS[event.kind] ?? null, job };
}

/** Tell whether an answer, known by its route and parameters, is out of date. */
export function isOutdated(event: ServerEvent, path: string, parameters: Parameters): boolean {
  const { paths, under, job } = outdatedBy(event);
  if (under !== null && (path === under || path.startsWith(`${under}/`))) return true;
  if (ABOUT_A_JOB.includes(path) && job !== null && parameters.query?.job_id === job) return true;
  if (!paths.has(path)) return false;
  return !path.startsWith("/v1/jobs/{job_id}") || parameters.path?.job_id === job;
}

export class Invalidation {
  #events: ServerEvent[] = [];
  #timer: number | null = null;

  add(events: readonly ServerEvent[]): void {
    this.#events.push(...events);
    if (this.#timer !== null) return;
    const wait = this.#events.length > MANY ? TOGETHER_MANY_MS : TOGETHER_MS;
    this.#timer = window.setTimeout(() => {
      this.#timer = null;
      const due = distinct(this.#events.splice(0));
      refetch((path, parameters) => due.some((event) => isOutdated(event, path, parameters)));
    }, wait);
  }
}

/** Return one event of every kind and job: others make nothing more out of date. */
function distinct(events: readonly ServerEvent[]): ServerEvent[] {
  return [...new Map(events.map((event) => [`${event.kind} ${event.job_id ?? ""}`, event])).values()];
}
