/**
 * Which answers an event makes out of date. Pure but for its timer: many events within a moment ask once.
 */
import { type Parameters, refetch } from "./cache";
import type { Schemas } from "./client";

type ServerEvent = Schemas["Event"];

const TOGETHER_MS = 250;
const TOGETHER_MANY_MS = 1_000;
const MANY = 50;
/** A search changes with every value that a trial reports, and its lists are long. */
const SLOW: readonly string[] = ["search.changed"];
const TOGETHER_SLOW_MS = 2_000;

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
  "upload.changed": "/v1/uploads",
};
/** Of a noun, and asked for as often as whoever shows it wants: it costs the server more than an event is worth. */
const DEAR: readonly string[] = ["/v1/searches/{name}/importances"];
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
  if (event.kind === "decision" || event.kind.startsWith("task.") || event.kind === "slots.changed") {
    for (const path of [...LISTS, ...POOL]) paths.add(path);
  }
  if (event.kind === "decision" || event.kind === "job.state") paths.add("/v1/searches/{name}/why");
  if (event.kind === "share.changed")
    for (const path of [...LISTS, ...OF_A_JOB, "/v1/jobs/{job_id}/shares"]) paths.add(path);
  if (event.kind === "search.changed" || event.kind === "endpoint.changed") paths.add("/v1/overview");
  if (event.kind === "queue.changed" || event.kind === "machine.changed") for (const path of POOL) paths.add(path);
  if (event.kind === "epoch.finished" || event.kind === "checkpoint.saved") paths.add("/v1/jobs/rows");
  if (event.kind === "epoch.finished" || event.kind === "model.changed") for (const path of TRAININGS) paths.add(path);
  if (event.kind === "checkpoint.saved") paths.add("/v1/jobs/{job_id}/checkpoints");
  if (event.kind === "job.state" && ENDS.includes(String(event.data?.to))) paths.add("/v1/jobs/{job_id}/files");
  if (event.kind === "model.saved" || event.kind === "task.left") paths.add("/v1/jobs/{job_id}/files");
  if (event.kind === "model.saved") for (const path of TRAININGS) paths.add(path);
  return { paths, under: NOUNS[event.kind] ?? null, job };
}

/** Tell whether an answer, known by its route and parameters, is out of date. */
export function isOutdated(event: ServerEvent, path: string, parameters: Parameters): boolean {
  const { paths, under, job } = outdatedBy(event);
  if (under !== null && (path === under || path.startsWith(`${under}/`))) {
    return !DEAR.includes(path) && !isOfAnother(event, parameters);
  }
  if (event.data?.search && path.startsWith("/v1/searches/{name}") && !DEAR.includes(path)) {
    return parameters.path?.name === event.data.search;
  }
  if (ABOUT_A_JOB.includes(path) && job !== null && parameters.query?.job_id === job) return true;
  if (!paths.has(path)) return false;
  if (!path.startsWith("/v1/jobs/{job_id}")) return true;
  return parameters.path?.job_id === job || (event.kind === "share.changed" && job === null);
}

/** Tell whether an answer is about one noun, and the event about another. One without a name is about all. */
function isOfAnother(event: ServerEvent, parameters: Parameters): boolean {
  const [of, shown] = [event.data?.name, parameters.path?.name];
  return of !== undefined && shown !== undefined && of !== shown;
}

export class Invalidation {
  readonly #quick = new Gathering((num) => (num > MANY ? TOGETHER_MANY_MS : TOGETHER_MS));
  readonly #slow = new Gathering(() => TOGETHER_SLOW_MS);

  add(events: readonly ServerEvent[]): void {
    this.#quick.add(events.filter(({ kind }) => !SLOW.includes(kind)));
    this.#slow.add(events.filter(({ kind }) => SLOW.includes(kind)));
  }
}

/** Events of a while, which ask once. */
class Gathering {
  #events: ServerEvent[] = [];
  #timer: number | null = null;
  readonly #waitMs: (num: number) => number;

  constructor(waitMs: (num: number) => number) {
    this.#waitMs = waitMs;
  }

  add(events: readonly ServerEvent[]): void {
    this.#events.push(...events);
    if (this.#timer !== null || this.#events.length === 0) return;
    this.#timer = window.setTimeout(() => {
      this.#timer = null;
      const due = distinct(this.#events.splice(0));
      refetch((path, parameters) => due.some((event) => isOutdated(event, path, parameters)));
    }, this.#waitMs(this.#events.length));
  }
}

/** Return one event of every kind about every job or noun: others make nothing more out of date. */
export function distinct(events: readonly ServerEvent[]): ServerEvent[] {
  const about = ({ kind, job_id, data }: ServerEvent) =>
    [kind, job_id ?? "", data?.name ?? "", data?.search ?? "", data?.to ?? ""].join(" ");
  return [...new Map(events.map((event) => [about(event), event])).values()];
}
