/** What a form asks for: the body that is sent, and what is wrong with it as far as one can tell here. */
import { type Constraint, violation } from "../../api/violation";
import { text } from "../../text";
import { FIELD_NAMES, type FieldName, fieldOf, isMeant, readField, type Typed } from "./fields";

export type Body = Readonly<Record<string, unknown>>;
export type Problems = Readonly<Partial<Record<FieldName, string>>>;

const words = text.submission;

export interface Asked {
  /** Every field that is given: a whole submission. */
  whole: Body;
  /** Only what is otherwise than in the job that is run again. */
  changes: Body;
  problems: Problems;
}

/**
 * Read a form.
 *
 * @param base what the job that is run again was submitted with; empty for a new one
 */
export function read(typed: Typed, base: Typed, constraints: Readonly<Record<string, Constraint>>): Asked {
  const fixed = typed.fixed === "true";
  const whole: Record<string, unknown> = {};
  const changes: Record<string, unknown> = {};
  const problems: Partial<Record<FieldName, string>> = {};
  for (const name of FIELD_NAMES) {
    if (!isMeant(name, fixed)) continue;
    const given = (typed[name] ?? "").trim();
    const value = given === "" ? null : readField(name, typed[name] ?? "");
    const wrong = value === undefined ? unreadable(name) : violation(constraints[name], value, formOf(name));
    if (wrong !== null) problems[name] = wrong;
    else if (value !== null) whole[name] = value;
    if (wrong === null && given !== (base[name] ?? "").trim()) changes[name] = value ?? emptied(name, constraints);
  }
  if (fixed) {
    whole.min_tasks = whole.max_tasks ?? 1;
    if ("max_tasks" in changes || "fixed" in changes) changes.max_tasks = changes.min_tasks = whole.max_tasks ?? 1;
  } else if ("fixed" in changes) changes.fixed = false;
  clash(whole, fixed, problems);
  if (typed.script === undefined || typed.script.trim() === "") problems.script ??= text.violation.required;
  return { whole, changes, problems };
}

/** What a field is when it is emptied: not given, or as if nobody had said anything. */
function emptied(name: FieldName, constraints: Readonly<Record<string, Constraint>>): unknown {
  if (fieldOf(name).kind === "words" || fieldOf(name).kind === "ids") return [];
  if (fieldOf(name).kind === "pairs") return {};
  return constraints[name]?.default ?? null;
}

function clash(whole: Body, fixed: boolean, problems: Partial<Record<FieldName, string>>): void {
  if (fixed) return;
  const min = numberOf(whole.min_tasks) ?? 1;
  const max = numberOf(whole.max_tasks) ?? 1;
  const parts = numberOf(whole.virtual_workers) ?? max;
  if (min > max && problems.min_tasks === undefined) problems.min_tasks = words.wrong.minAboveMax(min, max);
  if (max > parts && problems.virtual_workers === undefined) problems.virtual_workers = words.wrong.tooFewParts(max);
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function unreadable(name: FieldName): string {
  switch (fieldOf(name).kind) {
    case "words":
      return words.wrong.quote;
    case "time":
      return words.wrong.time;
    case "size":
      return words.wrong.size;
    default:
      return text.violation.number;
  }
}

function formOf(name: FieldName): string | undefined {
  return (words.wrong.forms as Partial<Record<FieldName, string>>)[name];
}
