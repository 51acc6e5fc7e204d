/** What somebody wants to be searched, as it is typed: as the server takes it, as a command line, and what is wrong with it. */
import type { Schemas } from "../../api/client";
import { text } from "../../text";
import { secondsOf } from "../submit/units";
import { quoteWord, splitWords } from "../submit/words";

export type Kind = "float" | "int" | "choice" | "fixed";

export interface TypedParameter {
  /** Of the row, so that it stays the same while its name is typed. */
  key: number;
  name: string;
  kind: Kind;
  low: string;
  high: string;
  step: string;
  log: boolean;
  choices: string;
  value: string;
}

export interface TypedSearch {
  name: string;
  script: string;
  args: string;
  parameters: readonly TypedParameter[];
  metric: string;
  direction: "minimize" | "maximize";
  reading: "last" | "min" | "max";
  second: string;
  secondDirection: "minimize" | "maximize";
  sampler: string;
  seed: string;
  halving: boolean;
  first: string;
  last: string;
  factor: string;
  pruner: string;
  maxTrials: string;
  parallel: string;
  maxTime: string;
  maxSlotHours: string;
  target: string;
  maxTasks: string;
  queue: string;
  priority: string;
  dataset: string;
  environment: string;
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
};

export const NEW_SEARCH: TypedSearch = {
  name: "",
  script: "",
  args: "",
  parameters: [{ ...NEW_PARAMETER, key: 0, name: "lr", low: "1e-5", high: "1e-1", log: true }],
  metric: "val_loss",
  direction: "minimize",
  reading: "last",
  second: "",
  secondDirection: "minimize",
  sampler: "tpe",
  seed: "0",
  halving: false,
  first: "1",
  last: "27",
  factor: "3",
  pruner: "",
  maxTrials: "40",
  parallel: "",
  maxTime: "",
  maxSlotHours: "",
  target: "",
  maxTasks: "1",
  queue: "default",
  priority: "5000",
  dataset: "",
  environment: "",
};

type Scalar = string | number | boolean | null;

/** A value as it is typed: a number, `true`, `false`, `null`, a list or text of JSON, else a text. */
export function scalarOf(typed: string): Schemas["SearchParameter"]["choices"][number] {
  const given = typed.trim();
  if (/^(true|false|null|-?\d+(\.\d+)?([eE][+-]?\d+)?|\[.*\]|".*")$/s.test(given)) {
    try {
      return JSON.parse(given) as Scalar;
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

/** The body of a search, without its code. Call it once nothing is wrong. */
export function bodyOf(typed: TypedSearch): Record<string, unknown> {
  const number = (value: string) => (value.trim() === "" ? undefined : Number(value));
  const given = (value: string) => (value.trim() === "" ? undefined : value.trim());
  const objectives = [{ metric: typed.metric.trim(), direction: typed.direction, reading: typed.reading }];
  const second = given(typed.second);
  if (second !== undefined) objectives.push({ metric: second, direction: typed.secondDirection, reading: "last" });
  const args = splitWords(typed.args) ?? [];
  return leaveOut({
    name: typed.name.trim(),
    script: given(typed.script),
    args: args.length > 0 ? args : undefined,
    parameters: Object.fromEntries(typed.parameters.map((one) => [one.name.trim(), parameterOf(one)])),
    objectives,
    sampler: { name: typed.sampler, seed: number(typed.seed) ?? 0 },
    halving: typed.halving
      ? { min: Number(typed.first), max: Number(typed.last), factor: Number(typed.factor) }
      : undefined,
    pruner: !typed.halving && typed.pruner !== "" ? { name: typed.pruner } : undefined,
    max_trials: number(typed.maxTrials),
    parallel: number(typed.parallel),
    max_time_s: given(typed.maxTime) === undefined ? undefined : secondsOf(typed.maxTime),
    max_slot_hours: number(typed.maxSlotHours),
    target: number(typed.target),
    max_tasks: number(typed.maxTasks),
    queue: given(typed.queue),
    priority: number(typed.priority),
    dataset: given(typed.dataset),
    environment: given(typed.environment),
  });
}

function leaveOut(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function parameterOf(one: TypedParameter): object {
  if (one.kind === "fixed") return { kind: "fixed", value: scalarOf(one.value) };
  if (one.kind === "choice") return { kind: "choice", choices: choicesOf(one.choices).map(scalarOf) };
  const step = one.step.trim() === "" || one.log ? {} : { step: Number(one.step) };
  return { kind: one.kind, low: Number(one.low), high: Number(one.high), ...(one.log && { log: true }), ...step };
}

/** A parameter as the command line takes it: `lr=log:1e-5..1e-1`. */
export function parameterText(one: TypedParameter): string {
  const name = one.name.trim();
  if (one.kind === "fixed") return `${name}=fixed:${one.value.trim()}`;
  if (one.kind === "choice") {
    const choices = choicesOf(one.choices);
    const body = choices.some((choice) => choice.startsWith("[")) ? `[${choices.join(",")}]` : choices.join(",");
    return `${name}=choice:${body}`;
  }
  const kind = one.log && one.kind === "float" ? "log" : one.kind;
  const after =
    one.log && one.kind === "int" ? ":log" : one.step.trim() !== "" && !one.log ? `:${one.step.trim()}` : "";
  return `${name}=${kind}:${one.low.trim()}..${one.high.trim()}${after}`;
}

export function commandOf(typed: TypedSearch, source: string): string {
  const option = (name: string, value: string, usual = "") =>
    value.trim() === usual || value.trim() === "" ? [] : [`${name} ${quoteWord(value.trim())}`];
  const metric = typed.metric.trim() + (typed.reading === "last" ? "" : `:${typed.reading}`);
  const objectives =
    typed.second.trim() === ""
      ? [`--metric ${quoteWord(metric)}`, ...(typed.direction === "maximize" ? ["--maximize"] : [])]
      : [
          `--objective ${quoteWord(`${metric}:${typed.direction}`)}`,
          `--objective ${quoteWord(`${typed.second.trim()}:${typed.secondDirection}`)}`,
        ];
  const args = splitWords(typed.args) ?? [];
  return [
    `pliant tune ${quoteWord(source.startsWith("-") ? `./${source}` : source)}`,
    ...option("--script", typed.script, source),
    ...option("--name", typed.name),
    ...typed.parameters.map((one) => `--param ${quoteWord(parameterText(one))}`),
    ...objectives,
    ...option("--sampler", typed.sampler, "tpe"),
    ...option("--seed", typed.seed, "0"),
    ...(typed.halving ? [`--halving ${typed.first}..${typed.last}:${typed.factor}`] : option("--pruner", typed.pruner)),
    ...option("--max-trials", typed.maxTrials),
    ...option("--parallel", typed.parallel),
    ...option("--max-time", typed.maxTime),
    ...option("--max-slot-hours", typed.maxSlotHours),
    ...option("--target", typed.target),
    ...option("--max", typed.maxTasks, "1"),
    ...option("--queue", typed.queue, "default"),
    ...option("--priority", typed.priority, "5000"),
    ...option("--dataset", typed.dataset),
    ...option("--environment", typed.environment),
    ...(args.length > 0 ? [`-- ${args.map(quoteWord).join(" ")}`] : []),
  ].join(" ");
}

const words = text.searches.create.problems;
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,59}$/;

/** What is wrong, by field; of a parameter by `parameters.KEY.FIELD`. The server says it again anyway. */
export function problemsOf(typed: TypedSearch): Record<string, string> {
  const found: Record<string, string> = {};
  const names = typed.parameters.map((one) => one.name.trim());
  for (const one of typed.parameters) {
    const say = (field: string, message: string) => {
      found[`parameters.${one.key}.${field}`] = message;
    };
    if (!NAME.test(one.name.trim())) say("name", words.name);
    else if (names.filter((name) => name === one.name.trim()).length > 1) say("name", words.twice);
    if (one.kind === "fixed" && one.value.trim() === "") say("value", words.value);
    if (one.kind === "choice" && choicesOf(one.choices).length < 2) say("choices", words.choices);
    if (one.kind === "float" || one.kind === "int") {
      const [low, high] = [one.low, one.high].map((end) => (end.trim() === "" ? Number.NaN : Number(end)));
      if (!Number.isFinite(low)) say("low", words.number);
      else if (!Number.isFinite(high)) say("high", words.number);
      else if ((low ?? 0) >= (high ?? 0)) say("high", words.order);
      else if (one.log && (low ?? 0) <= 0) say("low", words.log);
    }
  }
  if (typed.metric.trim() === "") found.metric = words.metric;
  if (typed.maxTime.trim() !== "" && secondsOf(typed.maxTime) === null) found.max_time_s = text.searches.limits.time;
  if (splitWords(typed.args) === null) found.args = text.searches.create.argsWrong;
  const limits = [typed.maxTrials, typed.maxTime, typed.maxSlotHours, typed.target];
  if (typed.sampler !== "grid" && limits.every((one) => one.trim() === "")) found.max_trials = words.limit;
  return found;
}
