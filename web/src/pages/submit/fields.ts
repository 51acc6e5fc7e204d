/**
 * The fields of a submission as a form has them, each a text: what is typed is what is kept, and what a request,
 * a command or a line of Python makes of it is derived here.
 */
import type { Schemas } from "../../api/client";
import { bytesOf, secondsOf, sizeText, timeText } from "./units";
import { joinWords, splitWords } from "./words";

/** How a field is typed. `words`: of a command line. `pairs`: NAME=VALUE, one a line. `ids`: divided by spaces or commas. */
export type FieldKind = "text" | "whole" | "number" | "flag" | "words" | "pairs" | "ids" | "time" | "size";

export interface Field {
  kind: FieldKind;
  /** The option of `pliant submit`. */
  option: string;
  /** For elastic jobs only. */
  elastic?: boolean;
  /** For fixed jobs only. */
  fixed?: boolean;
  /** It may be a secret, or somebody's address: it does not stand in the address of the page. */
  secret?: boolean;
}

const of = (kind: FieldKind, option: string, more: Partial<Field> = {}): Field => ({ kind, option, ...more });

export const FIELDS = {
  script: of("text", "--script"),
  args: of("words", "--"),
  name: of("text", "--name"),
  max_tasks: of("whole", "--max"),
  min_tasks: of("whole", "--min"),
  priority: of("whole", "--priority"),
  queue: of("text", "--queue"),
  tags: of("pairs", "--tag"),
  dataset: of("text", "--dataset"),
  environment: of("text", "--environment"),
  env: of("pairs", "--env", { secret: true }),
  virtual_workers: of("whole", "--virtual-workers", { elastic: true }),
  balance: of("text", "--balance", { elastic: true }),
  slots_per_task: of("whole", "--slots-per-task"),
  mode: of("text", "--mode", { elastic: true }),
  fixed: of("flag", "--fixed"),
  max_restarts: of("whole", "--max-restarts", { fixed: true }),
  after: of("ids", "--after"),
  after_any: of("ids", "--after-any"),
  weights: of("text", "--weights"),
  resume_from: of("text", "--resume-from", { elastic: true }),
  memory_bytes: of("size", "--memory"),
  time_limit_s: of("time", "--time-limit"),
  start_timeout_s: of("time", "--start-timeout"),
  stall_after_s: of("time", "--stall-after", { elastic: true }),
  on_stall: of("text", "--on-stall", { elastic: true }),
  checkpoint_freq: of("whole", "--checkpoint-freq", { elastic: true }),
  checkpoint_every_s: of("number", "--checkpoint-every", { elastic: true }),
  metrics_every: of("whole", "--metrics-every", { elastic: true }),
  histograms_every: of("whole", "--histograms-every", { elastic: true }),
  tracking: of("flag", "--tracking", { elastic: true }),
  audit: of("flag", "--audit", { elastic: true }),
  webhook: of("text", "--webhook", { secret: true }),
  mail: of("text", "--mail", { secret: true }),
  notify_on: of("text", "--notify-on"),
} as const satisfies Record<string, Field>;

export type FieldName = keyof typeof FIELDS;
/** What was typed; a field that is left out, or empty, is not given. */
export type Typed = Readonly<Partial<Record<FieldName, string>>>;

export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export function fieldOf(name: FieldName): Field {
  return FIELDS[name];
}

/** What a typed text means to the server; undefined if it cannot be read. */
export function readField(name: FieldName, typed: string): unknown {
  const text = typed.trim();
  switch (FIELDS[name].kind) {
    case "whole":
    case "number":
      return Number.isFinite(Number(text)) ? Number(text) : undefined;
    case "flag":
      return text === "true";
    case "words":
      return splitWords(typed) ?? undefined;
    case "pairs":
      return pairsOf(typed);
    case "ids":
      return text.split(/[\s,]+/).map((id) => (/^\d+$/.test(id) ? `job-${id}` : id));
    case "time":
      return text === "off" && name === "stall_after_s" ? 0 : (secondsOf(text) ?? undefined);
    case "size":
      return bytesOf(text) ?? undefined;
    default:
      return text;
  }
}

/** NAME=VALUE, one a line; a name alone has an empty value. */
function pairsOf(typed: string): Record<string, string> {
  const lines = typed
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

/** A value of the server's as one types it. */
function typedOf(name: FieldName, value: unknown): string {
  if (value === null || value === undefined) return "";
  switch (FIELDS[name].kind) {
    case "words":
      return joinWords(value as readonly string[]);
    case "pairs":
      return Object.entries(value as Record<string, string>)
        .map(([key, one]) => (one === "" ? key : `${key}=${one}`))
        .join("\n");
    case "ids":
      return (value as readonly string[]).join(" ");
    case "time":
      return timeText(value as number);
    case "size":
      return sizeText(value as number);
    default:
      return String(value);
  }
}

/** Whether a field counts for a job of the kind that is typed. */
export function isMeant(name: FieldName, fixed: boolean): boolean {
  const field = fieldOf(name);
  return fixed ? !field.elastic && name !== "min_tasks" : !field.fixed;
}

/** What a job that is there already was submitted with, as one would type it. Variables are kept unseen: they may be secrets. */
export function typedOfJob(job: Schemas["Job"]): Typed {
  const { spec } = job;
  const array = spec.array ?? null;
  const values: Partial<Record<FieldName, unknown>> = { ...spec, env: undefined };
  if (array !== null) {
    values.name = array.name;
    values.args = (spec.args ?? []).slice(0, (spec.args ?? []).length - Object.keys(array.values ?? {}).length);
  }
  if (values.name === spec.script) values.name = undefined;
  if (spec.fixed) values.virtual_workers = undefined;
  values.after = values.after_any = undefined; // what it waited for has happened, or is waited for anyway
  const typed: Partial<Record<FieldName, string>> = {};
  for (const name of FIELD_NAMES) {
    const text = typedOf(name, values[name]);
    if (text !== "" && isMeant(name, spec.fixed ?? false)) typed[name] = text;
  }
  return typed;
}

/** What a new submission begins with: what the server takes if nobody says anything. */
export const DEFAULTS: Typed = { max_tasks: "1", min_tasks: "1", priority: "5000", queue: "default", mode: "exact" };
