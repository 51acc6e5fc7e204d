/** The same search as a command line, as a search file and as Python. All say only what is not the default. */
import { type Option, quoted, submissionOptions } from "../submit/command";
import { DEFAULTS } from "../submit/fields";
import { joinWords, pythonOf, quoteWord } from "../submit/words";
import {
  choicesOf,
  NEW_SEARCH,
  namesOf,
  optionsOf,
  parameterOf,
  scalarOf,
  type TypedConstraint,
  type TypedObjective,
  type TypedParameter,
  type TypedSearch,
  type Value,
} from "./search_form";

/** Where the code comes from, and which script of it is meant if nobody says so. */
export interface Code {
  path: string;
  script: string | null;
}

/** An item of a list as the command line has it: a text plainly if it is read as one. */
function itemText(value: Value): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = value !== "" && value === value.trim() && !/[,@|"']/.test(value) && !value.startsWith("[");
  return plain && typeof scalarOf(value) === "string" && !looksLikeNumber(value) ? value : JSON.stringify(value);
}

function looksLikeNumber(value: string): boolean {
  return Number.isFinite(Number(value)) || /^[+-]?(inf|infinity|nan)$/i.test(value);
}

/** A parameter as the command line takes it: `lr=log:1e-5..1e-1`, with its conditions. */
export function parameterText(one: TypedParameter): string {
  const when = one.when.map(({ of, values }) => `@${of}=${choicesOf(values).map(scalarOf).map(itemText).join("|")}`);
  return `${one.name.trim()}=${domainText(one)}${when.join("")}`;
}

function domainText(one: TypedParameter): string {
  if (one.kind === "fixed") {
    const value = scalarOf(one.value);
    return `fixed:${itemText(value)}`;
  }
  if (one.kind === "choice") {
    const choices = choicesOf(one.choices).map(scalarOf);
    return `choice:${choices.some(Array.isArray) ? JSON.stringify(choices) : choices.map(itemText).join(",")}`;
  }
  const kind = one.log && one.kind === "float" ? "log" : one.kind;
  const after =
    one.log && one.kind === "int" ? ":log" : one.step.trim() !== "" && !one.log ? `:${one.step.trim()}` : "";
  return `${kind}:${one.low.trim()}..${one.high.trim()}${after}`;
}

const reading = (one: TypedObjective | TypedConstraint) => (one.reading === "last" ? "" : `:${one.reading}`);

export function constraintText(one: TypedConstraint): string {
  return `${one.metric.trim()}${reading(one)}${one.side}${one.bound.trim()}`;
}

/** One objective is a metric, several say their directions. */
function objectiveOptions(objectives: readonly TypedObjective[]): Option[] {
  const [only, ...others] = objectives;
  if (only === undefined) return [];
  if (others.length === 0) {
    const metric: Option = ["metric", only.metric.trim() + reading(only)];
    return only.direction === "maximize" ? [metric, ["maximize", null]] : [metric];
  }
  return objectives.map((one) => ["objective", `${one.metric.trim()}:${one.direction}${reading(one)}`]);
}

function earlyOptions(typed: TypedSearch): Option[] {
  const option = (name: string, value: string, usual = ""): Option[] =>
    value.trim() === "" || value.trim() === usual ? [] : [[name, value.trim()]];
  switch (typed.early) {
    case "halving": {
      const resource = typed.resource === "epoch" ? "" : "step:";
      return [
        ["halving", `${resource}${typed.first}..${typed.last}:${typed.factor}`],
        ...option("halving-order", typed.order, "rungs"),
        ...option("brackets", typed.brackets, "1"),
        ...option("rung-size", typed.rungSize),
      ];
    }
    case "pruner":
      return [["pruner", typed.pruner], ...pairOptions("pruner-option", typed.prunerOptions)];
    case "population": {
      const said = (name: string, value: string, usual: string) =>
        option("population-option", value, usual).map(([key, one]): Option => [key, `${name}=${one ?? ""}`]);
      return [
        ["population", `${typed.size}:${typed.every}..${typed.epochs}`],
        ...said("fraction", typed.fraction, "0.25"),
        ...said("factor", typed.change, "1.2"),
        ...said("resample", typed.resample, "0.25"),
      ];
    }
    default:
      return [];
  }
}

function pairOptions(name: string, typed: string): Option[] {
  return (optionsOf(typed) ?? []).map(([key, value]) => [name, `${key}=${itemText(value)}`]);
}

/** Options of the search, without the dashes before them, in the order in which `--help` lists them. */
function searchOptions(typed: TypedSearch): Option[] {
  const option = (name: string, value: string, usual = ""): Option[] =>
    value.trim() === usual || value.trim() === "" ? [] : [[name, value.trim()]];
  const isUsual = typed.passAs.join() === NEW_SEARCH.passAs.join();
  return [
    ...typed.parameters.map((one): Option => ["param", parameterText(one)]),
    ...objectiveOptions(typed.objectives),
    ...typed.constraints.map((one): Option => ["constraint", constraintText(one)]),
    ...option("sampler", typed.sampler, "tpe"),
    ...option("seed", typed.seed, "0"),
    ...pairOptions("sampler-option", typed.samplerOptions),
    ...earlyOptions(typed),
    ...(isUsual ? [] : typed.passAs.map((way): Option => ["pass-as", way])),
    ...option("warm-start", typed.warmStart && `${typed.warmStart.trim()}.db`),
    ...option("max-trials", typed.maxTrials),
    ...option("parallel", typed.parallel),
    ...option("max-time", typed.maxTime),
    ...option("max-slot-hours", typed.maxSlotHours),
    ...option("target", typed.target),
    ...option("description", typed.description),
    ...namesOf(typed.share).map((who): Option => ["share", who]),
  ];
}

function allOptions(typed: TypedSearch, code: Code): { options: Option[]; args: string[] } {
  const { options, args } = submissionOptions(typed.job, DEFAULTS, code.script);
  return { options: [...searchOptions(typed), ...options.filter(([, value]) => value !== "")], args };
}

/** Trials of another search come by way of a study of Optuna's, which is written first. */
function exportLine(typed: TypedSearch): string[] {
  const from = typed.warmStart.trim();
  return from === "" ? [] : [`pliant searches export ${quoteWord(from)} ${quoteWord(`${from}.db`)}`];
}

export function commandOf(typed: TypedSearch, code: Code): string {
  const { options, args } = allOptions(typed, code);
  const command = [
    `pliant tune ${quoteWord(code.path.startsWith("-") ? `./${code.path}` : code.path)}`,
    ...options.map(quoted),
    ...(args.length > 0 ? [`-- ${joinWords(args)}`] : []),
  ].join(" ");
  return [...exportLine(typed), command].join("\n");
}

/** Keys of a search file whose value is a number. */
const NUMBERS: ReadonlySet<string> = new Set(
  "seed brackets rung-size max-trials parallel max-slot-hours target max min priority slots-per-task virtual-workers fixed max-restarts checkpoint-freq checkpoint-every metrics-every histograms-every".split(
    " ",
  ),
);
/** Keys whose value is a list, and how the file calls the option. */
const LISTS: Readonly<Record<string, string>> = {
  objective: "objective",
  constraint: "constraints",
  "sampler-option": "sampler-option",
  "pruner-option": "pruner-option",
  "population-option": "population-option",
  "pass-as": "pass-as",
  share: "share",
  tag: "tag",
  after: "after",
  "after-any": "after-any",
  env: "env",
};

/** A search file: YAML, in which every value is one of JSON or a plain text. */
export function fileOf(typed: TypedSearch, code: Code): string {
  const { options, args } = allOptions(typed, code);
  const keys = new Map<string, unknown>([["path", code.path]]);
  const parameters: string[] = [];
  for (const [name, value] of options) {
    const list = LISTS[name];
    if (value === null) keys.set(...flagOf(name));
    else if (name === "param") {
      const at = value.indexOf("=");
      parameters.push(`  ${value.slice(0, at)}: ${yamlOf(value.slice(at + 1))}`);
      keys.set("parameters", null);
    } else if (list !== undefined) keys.set(list, [...((keys.get(list) as string[] | undefined) ?? []), value]);
    else keys.set(name, NUMBERS.has(name) && Number.isFinite(Number(value)) ? Number(value) : value);
  }
  if (args.length > 0) keys.set("args", args);
  const lines = [...keys].flatMap(([key, value]) =>
    key === "parameters" ? ["parameters:", ...parameters] : [`${key}: ${yamlOf(value)}`],
  );
  return [...exportLine(typed).map((line) => `# ${line}`), ...lines, ""].join("\n");
}

function flagOf(name: string): [string, unknown] {
  if (name === "maximize") return ["direction", "maximize"];
  return name.startsWith("no-") ? [name.slice("no-".length), false] : [name, true];
}

/** A value as YAML: a plain text where nothing else could be meant, else as JSON, which YAML takes. */
function yamlOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => JSON.stringify(one)).join(", ")}]`;
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = /^[A-Za-z./][\w./@|=,:+-]*$/.test(value) && !/: |:$|^(true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return plain ? value : JSON.stringify(value);
}

/** The same in Python, with the client that Pliant has. */
export function pythonCode(typed: TypedSearch, code: Code, body: Readonly<Record<string, unknown>>): string {
  const usual: Readonly<Record<string, unknown>> = {
    min_tasks: 1,
    max_tasks: 1,
    priority: 5000,
    queue: "default",
    mode: "exact",
  };
  const from = typed.warmStart.trim();
  const { parameters: _parameters, known: _known, script, ...others } = body;
  const given = Object.entries(others).filter(([name, value]) => value !== undefined && value !== usual[name]);
  const space = `{\n${typed.parameters.map((one) => `            ${pythonOf(one.name.trim())}: ${pythonOf(parameterOf(one))},\n`).join("")}        }`;
  const lines = [
    pythonOf(code.path),
    ...(script !== undefined && script !== code.script ? [`script=${pythonOf(script)}`] : []),
    `parameters=${space}`,
    ...given.map(([name, value]) => `${name}=${pythonOf(value)}`),
    ...(from === "" ? [] : ["known=known"]),
  ];
  const known =
    from === ""
      ? ""
      : `    ended = client.searches.trials(${pythonOf(from)}, states=["completed", "pruned"])\n` +
        "    known = [\n" +
        '        {"values": one.values, "state": one.state, "results": one.results, "reports": one.reports,\n' +
        '         "violations": one.violations}\n' +
        "        for one in ended\n    ]\n";
  const call = `    search = client.tune(\n${lines.map((line) => `        ${line},\n`).join("")}    )`;
  return `from pliant.client import Client\n\nwith Client.connect() as client:\n${known}${call}\n`;
}
