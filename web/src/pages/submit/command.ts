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

/** What has to be given on the command line, in the order in which `--help` lists it. */
export function commandOf(origin: Origin, typed: Typed): string {
  const fixed = typed.fixed === "true";
  const again = origin.kind === "job";
  const { base } = origin;
  const words: string[] = [];
  let args: string[] = [];
  for (const name of FIELD_NAMES) {
    if (!isMeant(name, fixed)) continue;
    const given = (typed[name] ?? "").trim();
    if (given === (base[name] ?? "").trim()) continue;
    if (name === "args") args = splitWords(given) ?? [given];
    else if (origin.kind === "code" && name === "script" && given === origin.script) continue;
    else if (name === "max_tasks" && fixed) continue;
    else words.push(...optionOf(name, given));
  }
  if (fixed && (!again || typed.max_tasks !== base.max_tasks || base.fixed !== "true")) {
    words.push(`--fixed ${quoteWord(typed.max_tasks?.trim() || "1")}`);
  }
  const head = again ? `pliant rerun ${origin.id}` : `pliant submit ${quoteWord(pathOf(origin.path))}`;
  const tail = args.length > 0 ? [`-- ${joinWords(args)}`] : [];
  return [head, ...words, ...tail].join(" ");
}

/** A path that is not taken for an option. */
function pathOf(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

function optionOf(name: FieldName, given: string): string[] {
  const { option, kind } = fieldOf(name);
  if (name === "fixed") return [];
  if (kind === "flag") return [given === "false" || given === "" ? option.replace("--", "--no-") : option];
  if (kind === "pairs" || kind === "ids") {
    return given
      .split(kind === "pairs" ? /\r?\n/ : /[\s,]+/)
      .map((one) => one.trim())
      .filter((one) => one !== "")
      .map((one) => `${option} ${quoteWord(one)}`);
  }
  if (name === "environment" && given.startsWith("requirements:")) {
    return [`--requirements ${quoteWord(given.slice("requirements:".length))}`];
  }
  if (given === "" && (kind === "size" || kind === "time")) return [`${option} off`];
  return [`${option} ${quoteWord(given)}`];
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
