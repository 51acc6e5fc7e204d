/** What somebody wants to be searched, as it is typed: as the server takes it, and what is wrong with it. */
import type { Schemas } from "../../api/client";
import { JOB } from "../../api/constraints";
import type { Constraint } from "../../api/violation";
import { text } from "../../text";
import { DEFAULTS, type Typed } from "../submit/fields";
import { read } from "../submit/request";
import { secondsOf } from "../submit/units";

export type Kind = "float" | "int" | "choice" | "fixed";
export type Direction = "minimize" | "maximize";
export type Reading = "last" | "min" | "max";
/** What ends trials before their end. */
export type Early = "none" | "halving" | "pruner" | "population";

/** One of several that are added and removed: of the row, so that it stays the same while it is typed. */
interface Row {
  key: number;
}

/** A parameter is there only if another one, which stands before it, has one of these values. */
export interface TypedCondition extends Row {
  of: string;
  values: string;
}

export interface TypedParameter extends Row {
  name: string;
  kind: Kind;
  low: string;
  high: string;
  step: string;
  log: boolean;
  choices: string;
  value: string;
  when: readonly TypedCondition[];
}

export interface TypedObjective extends Row {
  metric: string;
  direction: Direction;
  reading: Reading;
}

export interface TypedConstraint extends Row {
  metric: string;
  side: "<=" | ">=";
  bound: string;
  reading: Reading;
}

export interface TypedSearch {
  parameters: readonly TypedParameter[];
  objectives: readonly TypedObjective[];
  constraints: readonly TypedConstraint[];
  sampler: string;
  seed: string;
  samplerOptions: string;
  early: Early;
  resource: "epoch" | "step";
  first: string;
  last: string;
  factor: string;
  order: "rungs" | "arrival";
  brackets: string;
  rungSize: string;
  pruner: string;
  prunerOptions: string;
  size: string;
  every: string;
  epochs: string;
  fraction: string;
  change: string;
  resample: string;
  maxTrials: string;
  parallel: string;
  maxTime: string;
  maxSlotHours: string;
  target: string;
  passAs: readonly string[];
  /** Names of searches from whose trials it learns: one, or none. */
  warmStart: string;
  description: string;
  share: string;
  /** What all trials have in common, as a submission has it; its name is that of the search. */
  job: Typed;
}

export const NEW_PARAMETER: Omit<TypedParameter, "key"> = {
  name: "",
  kind: "float",
  low: "",
  high: "",
  step: "",
  log: false,
  choices: "",
  value: "",
  when: [],
};

export const NEW_OBJECTIVE: Omit<TypedObjective, "key"> = { metric: "", direction: "minimize", reading: "last" };
export const NEW_CONSTRAINT: Omit<TypedConstraint, "key"> = { metric: "", side: "<=", bound: "", reading: "last" };
export const PASS_AS: readonly string[] = ["arguments", "environment", "config", "model"];

export const NEW_SEARCH: TypedSearch = {
  parameters: [{ ...NEW_PARAMETER, key: 0, name: "lr", low: "1e-5", high: "1e-1", log: true }],
  objectives: [{ ...NEW_OBJECTIVE, key: 0, metric: "val_loss" }],
  constraints: [],
  sampler: "tpe",
  seed: "0",
  samplerOptions: "",
  early: "none",
  resource: "epoch",
  first: "1",
  last: "27",
  factor: "3",
  order: "rungs",
  brackets: "1",
  rungSize: "",
  pruner: "median",
  prunerOptions: "",
  size: "8",
  every: "3",
  epochs: "27",
  fraction: "0.25",
  change: "1.2",
  resample: "0.25",
  maxTrials: "40",
  parallel: "",
  maxTime: "",
  maxSlotHours: "",
  target: "",
  passAs: PASS_AS.slice(0, 2),
  warmStart: "",
  description: "",
  share: "",
  job: DEFAULTS,
};

/** The next key of some rows. */
export function nextKey(rows: readonly Row[]): number {
  return Math.max(-1, ...rows.map((one) => one.key)) + 1;
}

export type Value = Schemas["SearchParameter"]["choices"][number];

/** A value as it is typed: a number, `true`, `false`, `null`, a list or text of JSON, else a text. */
export function scalarOf(typed: string): Value {
  const given = typed.trim();
  if (/^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|\[.*\]|".*")$/s.test(given)) {
    try {
      return JSON.parse(given) as Value;
    } catch {
      return given;
    }
  }
  return given;
}

/** Choices divided by commas, but not by those within brackets or quotes. */
export function choicesOf(typed: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let quoted = false;
  let item = "";
  for (const sign of typed) {
    if (sign === '"') quoted = !quoted;
    if (!quoted && (sign === "[" || sign === "]")) depth += sign === "[" ? 1 : -1;
    if (sign === "," && depth === 0 && !quoted) {
      found.push(item.trim());
      item = "";
    } else item += sign;
  }
  return [...found, item.trim()].filter((one) => one !== "");
}

/** Lines of NAME=VALUE; null of a line that is none. */
export function optionsOf(typed: string): [string, Value][] | null {
  const lines = typed.split(/\r?\n/).map((line) => line.trim());
  const found: [string, Value][] = [];
  for (const line of lines.filter((one) => one !== "")) {
    const at = line.indexOf("=");
    if (at < 1 || line.slice(at + 1).trim() === "") return null;
    found.push([line.slice(0, at).trim(), scalarOf(line.slice(at + 1))]);
  }
  return found;
}

/** The names in a field, divided by spaces or commas. */
export function namesOf(typed: string): string[] {
  return typed.split(/[\s,]+/).filter((one) => one !== "");
}

/** A field as the server takes it; left out where nothing is typed. */
const number = (value: string) => (value.trim() === "" ? undefined : Number(value));
const given = (value: string) => (value.trim() === "" ? undefined : value.trim());

/**
 * The body of a search, without its code. What cannot be read is sent as it is, for the server to refuse.
 *
 * @param known trials of another search, from which it learns
 */
export function bodyOf(typed: TypedSearch, known: readonly object[] = []): Record<string, unknown> {
  const share = namesOf(typed.share);
  return leaveOut({
    ...read(typed.job, {}, JOB).whole,
    parameters: Object.fromEntries(typed.parameters.map((one) => [one.name.trim(), parameterOf(one)])),
    objectives: typed.objectives.map(({ metric, direction, reading }) => ({
      metric: metric.trim(),
      direction,
      reading,
    })),
    constraints: typed.constraints.length > 0 ? typed.constraints.map(constraintOf) : undefined,
    sampler: { name: typed.sampler, seed: number(typed.seed) ?? 0, ...withOptions(typed.samplerOptions) },
    ...earlyOf(typed),
    pass_as: typed.passAs.join() === NEW_SEARCH.passAs.join() ? undefined : typed.passAs,
    known: known.length > 0 ? known : undefined,
    max_trials: number(typed.maxTrials),
    parallel: number(typed.parallel),
    max_time_s: given(typed.maxTime) === undefined ? undefined : (secondsOf(typed.maxTime) ?? typed.maxTime),
    max_slot_hours: number(typed.maxSlotHours),
    target: number(typed.target),
    description: given(typed.description),
    shared_with: share.length > 0 ? share : undefined,
  });
}

function earlyOf(typed: TypedSearch): Record<string, unknown> {
  switch (typed.early) {
    case "halving":
      return {
        halving: leaveOut({
          resource: typed.resource === "epoch" ? undefined : typed.resource,
          min: number(typed.first),
          max: number(typed.last),
          factor: number(typed.factor),
          order: typed.order === "rungs" ? undefined : typed.order,
          brackets: typed.brackets.trim() === "1" ? undefined : number(typed.brackets),
          size: number(typed.rungSize),
        }),
      };
    case "pruner":
      return { pruner: { name: typed.pruner, ...withOptions(typed.prunerOptions) } };
    case "population":
      return {
        population: leaveOut({
          size: number(typed.size),
          every: number(typed.every),
          max: number(typed.epochs),
          fraction: typed.fraction.trim() === "0.25" ? undefined : number(typed.fraction),
          factor: typed.change.trim() === "1.2" ? undefined : number(typed.change),
          resample: typed.resample.trim() === "0.25" ? undefined : number(typed.resample),
        }),
      };
    default:
      return {};
  }
}

function withOptions(typed: string): { options?: Record<string, Value> } {
  const options = optionsOf(typed) ?? [];
  return options.length > 0 ? { options: Object.fromEntries(options) } : {};
}

function constraintOf(one: TypedConstraint): object {
  const bound = one.side === "<=" ? { upper: number(one.bound) } : { lower: number(one.bound) };
  return { metric: one.metric.trim(), ...bound, ...(one.reading !== "last" && { reading: one.reading }) };
}

function leaveOut(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

/** A parameter as the server takes it, and as a search file and Python may say it. */
export function parameterOf(one: TypedParameter): Record<string, unknown> {
  const conditions = one.when.map(({ of, values }) => [of, choicesOf(values).map(scalarOf)]);
  const when = conditions.length > 0 ? { when: Object.fromEntries(conditions) as object } : {};
  if (one.kind === "fixed") return { kind: "fixed", value: scalarOf(one.value), ...when };
  if (one.kind === "choice") return { kind: "choice", choices: choicesOf(one.choices).map(scalarOf), ...when };
  const step = one.step.trim() === "" || one.log ? {} : { step: Number(one.step) };
  const ends = { low: number(one.low), high: number(one.high) };
  return { kind: one.kind, ...ends, ...(one.log && { log: true }), ...step, ...when };
}

/** A search makes the same metrics small or large, so that its results mean the same here. */
export function hasSameGoals(other: Schemas["SearchSettings"], typed: TypedSearch): boolean {
  const goal = (one: { metric: string; direction: string }) => `${one.direction} ${one.metric.trim()}`;
  return other.objectives.map(goal).join("\n") === typed.objectives.map(goal).join("\n");
}

/** A trial of another search as one that is known; null if this search could not have had it. */
export function knownOf(trial: Schemas["Trial"], typed: TypedSearch): object | null {
  const values: Record<string, Value> = {};
  for (const one of typed.parameters) {
    const name = one.name.trim();
    const value = trial.values[name];
    if (value !== undefined && isOfSpace(value, one)) values[name] = value;
    else if (value !== undefined || one.when.length === 0) return null;
  }
  const { state, results, reports, violations = [] } = trial;
  const isWhole = results?.length === typed.objectives.length && violations.length === typed.constraints.length;
  return isWhole ? { values, state, results, reports, violations } : null;
}

function isOfSpace(value: Value, one: TypedParameter): boolean {
  const among = (given: readonly Value[]) => given.some((other) => JSON.stringify(other) === JSON.stringify(value));
  if (one.kind === "fixed") return among([scalarOf(one.value)]);
  if (one.kind === "choice") return among(choicesOf(one.choices).map(scalarOf));
  if (typeof value !== "number" || value < Number(one.low) || value > Number(one.high)) return false;
  return one.kind === "float" || Number.isInteger(value);
}

const words = text.searches.create.problems;
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,59}$/;
const SEARCH_JOB: Readonly<Record<string, Constraint>> = JOB;

/**
 * What is wrong, by field, as far as one can tell without the server: what it could not even be asked about.
 * Of a parameter by `parameters.KEY.FIELD`; of what all trials have in common by `job.FIELD`.
 */
export function problemsOf(typed: TypedSearch): Record<string, string> {
  const found: Record<string, string> = {};
  const names = typed.parameters.map((one) => one.name.trim());
  typed.parameters.forEach((one, index) => {
    const say = (field: string, message: string) => {
      found[`parameters.${one.key}.${field}`] = message;
    };
    if (!NAME.test(one.name.trim())) say("name", words.name);
    else if (names.indexOf(one.name.trim()) < index) say("name", words.twice);
    if (one.kind === "fixed" && one.value.trim() === "") say("value", words.value);
    if (one.kind === "choice" && choicesOf(one.choices).length < 2) say("choices", words.choices);
    if (one.kind === "float" || one.kind === "int") sayOfEnds(one, say);
    for (const condition of one.when) {
      if (!names.slice(0, index).includes(condition.of)) say(`when.${condition.key}.of`, words.earlier);
      else if (choicesOf(condition.values).length === 0) say(`when.${condition.key}.values`, words.value);
    }
  });
  for (const one of typed.objectives) {
    if (one.metric.trim() === "") found[`objectives.${one.key}.metric`] = words.metric;
  }
  for (const one of typed.constraints) {
    if (one.metric.trim() === "") found[`constraints.${one.key}.metric`] = words.metric;
    if (one.bound.trim() === "" || !Number.isFinite(Number(one.bound))) {
      found[`constraints.${one.key}.bound`] = words.number;
    }
  }
  if (optionsOf(typed.samplerOptions) === null) found["sampler.options"] = words.options;
  if (typed.early === "pruner" && optionsOf(typed.prunerOptions) === null) found["pruner.options"] = words.options;
  if (typed.maxTime.trim() !== "" && secondsOf(typed.maxTime) === null) found.max_time_s = text.searches.limits.time;
  for (const [field, message] of Object.entries(read(typed.job, {}, SEARCH_JOB).problems)) {
    if (field !== "script" || (typed.job.script ?? "") !== "") found[`job.${field}`] = message;
  }
  return found;
}

function sayOfEnds(one: TypedParameter, say: (field: string, message: string) => void): void {
  const [low, high] = [one.low, one.high].map((end) => (end.trim() === "" ? Number.NaN : Number(end)));
  if (low === undefined || !Number.isFinite(low)) say("low", words.number);
  else if (high === undefined || !Number.isFinite(high)) say("high", words.number);
  else if (low >= high) say("high", words.order);
  else if (one.log && low <= 0) say("low", words.log);
  if (!one.log && one.step.trim() !== "" && !Number.isFinite(Number(one.step))) say("step", words.number);
}

/** The field of the server that a field of the form fills. */
export function serverField(field: string, typed: TypedSearch): string {
  const [, list, key, part] = /^(parameters|objectives|constraints)\.(\d+)\.(.+)$/.exec(field) ?? [];
  if (field.startsWith("job.")) return field.slice("job.".length);
  if (list === undefined || part === undefined) return field;
  if (list === "parameters") {
    const one = typed.parameters.find((row) => row.key === Number(key));
    const [, of] = /^when\.(\d+)\./.exec(part) ?? [];
    const inner = of === undefined ? part : `when.${one?.when.find((row) => row.key === Number(of))?.of ?? ""}`;
    return part === "name" ? `parameters.${one?.name.trim()}` : `parameters.${one?.name.trim()}.${inner}`;
  }
  const rows: readonly Row[] = list === "objectives" ? typed.objectives : typed.constraints;
  const index = rows.findIndex((row) => row.key === Number(key));
  if (part !== "bound") return `${list}.${index}.${part}`;
  return `constraints.${index}.${typed.constraints[index]?.side === "<=" ? "upper" : "lower"}`;
}
