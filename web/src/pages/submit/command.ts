/** The same submission as a command line, and as Python. Both say only what is not the default. */
import { FIELD_NAMES, type FieldName, fieldOf, isMeant, type Typed } from "./fields";
import type { Body } from "./request";
import { joinWords, pythonOf, quoteWord, splitWords } from "./words";

/** Where the code comes from. */
export type Origin =
  /** `script` is the one that is meant if nobody says so; `base` are the defaults. */
  | { kind: "code"; path: string; script: string | null; base: Typed }
  /** The job that is run again, and what it was submitted with. */
  | { kind: "job"; id: string; base: Typed };

/** An option without the dashes before it, and its value; null: it is a flag. */
export type Option = readonly [name: string, value: string | null];

/** What has to be given on the command line. */
export function commandOf(origin: Origin, typed: Typed): string {
  const { options, args } = submissionOptions(typed, origin.base, origin.kind === "code" ? origin.script : undefined);
  const again = origin.kind === "job";
  const head = again ? `pliant rerun ${origin.id}` : `pliant submit ${quoteWord(pathOf(origin.path))}`;
  const tail = args.length > 0 ? [`-- ${joinWords(args)}`] : [];
  return [head, ...options.map(quoted), ...tail].join(" ");
}

export function quoted([name, value]: Option): string {
  return value === null ? `--${name}` : `--${name} ${quoteWord(value)}`;
}

/**
 * The options of a submission that are not as in `base`, in the order in which `--help` lists them, and the arguments.
 *
 * @param script the one that is meant if nobody says so; undefined: of a job that is run again
 */
export function submissionOptions(
  typed: Typed,
  base: Typed,
  script: string | null | undefined,
): { options: Option[]; args: string[] } {
  const fixed = typed.fixed === "true";
  const options: Option[] = [];
  let args: string[] = [];
  for (const name of FIELD_NAMES) {
    if (!isMeant(name, fixed)) continue;
    const given = (typed[name] ?? "").trim();
    if (given === (base[name] ?? "").trim()) continue;
    if (name === "args") args = splitWords(given) ?? [given];
    else if (name === "script" && given === script) continue;
    else if (name === "max_tasks" && fixed) continue;
    else options.push(...optionOf(name, given));
  }
  if (fixed && (script !== undefined || typed.max_tasks !== base.max_tasks || base.fixed !== "true")) {
    options.push(["fixed", typed.max_tasks?.trim() || "1"]);
  }
  return { options, args };
}

/** A path that is not taken for an option. */
function pathOf(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

function optionOf(field: FieldName, given: string): Option[] {
  const { option, kind } = fieldOf(field);
  const name = option.slice(2);
  if (field === "fixed") return [];
  if (kind === "flag") return [[given === "false" || given === "" ? `no-${name}` : name, null]];
  if (kind === "pairs" || kind === "ids") {
    return given
      .split(kind === "pairs" ? /\r?\n/ : /[\s,]+/)
      .map((one) => one.trim())
      .filter((one) => one !== "")
      .map((one) => [name, one]);
  }
  if (field === "environment" && given.startsWith("requirements:")) {
    return [["requirements", given.slice("requirements:".length)]];
  }
  if (given === "" && (kind === "size" || kind === "time")) return [[name, "off"]];
  return [[name, given]];
}

/** The same in Python, with the client that Pliant has. */
export function pythonCode(origin: Origin, body: Body): string {
  const first = origin.kind === "job" ? pythonOf(origin.id) : pythonOf(origin.path);
  const call = origin.kind === "job" ? "rerun" : "submit";
  const options = Object.entries(body).filter(([, value]) => value !== undefined);
  const lines = [first, ...options.map(([name, value]) => `${name}=${pythonOf(value)}`)];
  const one = `    job = client.${call}(${lines.join(", ")})`;
  const shown =
    one.length <= 88 ? one : `    job = client.${call}(\n${lines.map((l) => `        ${l},`).join("\n")}\n    )`;
  return `from pliant.client import Client\n\nwith Client.connect() as client:\n${shown}\n`;
}
