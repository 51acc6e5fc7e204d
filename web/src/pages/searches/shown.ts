/** What of a search is shown: states as signs, values as people read them, limits in words. */
import type { Schemas } from "../../api/client";
import { count, duration, measure, NONE } from "../../format/format";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";

export type SearchView = Schemas["SearchView"];
export type TrialRow = Schemas["TrialRow"];
export type Value = TrialRow["values"][string];
export type Parameters = SearchView["settings"]["parameters"];
export type Parameter = Parameters[string];

/** The states that jobs have not, or with another meaning: the sign of a state of jobs that fits, and its tone. */
export const SIGNS: Readonly<Record<string, { sign: string; tone: StateTone }>> = {
  pruned: { sign: "stopped", tone: "waiting" },
};

const ENDED = ["completed", "pruned", "failed", "stopped"];

/** Trials that have ended, and all that there will be, as far as that is known. */
export function trialCounts(search: SearchView): { ended: number; all: number } {
  const ended = ENDED.reduce((total, state) => total + (search.trials[state] ?? 0), 0) - search.num_known;
  return { ended, all: search.settings.max_trials ?? search.num_trials - search.num_known };
}

/** A chosen value as one reads it. */
export function valueText(value: Value | undefined): string {
  if (value === undefined) return NONE;
  if (typeof value === "number")
    return Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : measure(value);
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

/** What may be chosen of a parameter, as the command line writes it. */
export function spaceText(parameter: Parameter): string {
  const { kind, low, high, log, step, choices, value } = parameter;
  if (kind === "fixed") return valueText(value ?? null);
  if (kind === "choice") return choices.map(valueText).join(", ");
  return `${low ?? NONE} … ${high ?? NONE}${step ? `, by ${step}` : ""}${log ? ", log" : ""}`;
}

export function objectiveText(search: SearchView): string {
  return search.settings.objectives
    .map((one) => `${one.metric} ${one.direction === "minimize" ? "↓" : "↑"}`)
    .join(", ");
}

export function limitTexts(settings: SearchView["settings"]): string[] {
  const { limit } = text.searches;
  const given = (value: number | null | undefined, write: (value: number) => string) =>
    value == null ? [] : [write(value)];
  return [
    ...given(settings.max_trials, (value) => limit.max_trials(count(value))),
    ...given(settings.parallel, (value) => limit.parallel(count(value))),
    ...given(settings.max_time_s, (value) => limit.max_time_s(duration(value))),
    ...given(settings.max_slot_hours, (value) => limit.max_slot_hours(measure(value))),
    ...given(settings.target, (value) => limit.target(measure(value))),
  ];
}

/** The first result of a trial, if it is a number. */
export function resultOf(trial: TrialRow): number | null {
  return trial.results?.[0] ?? null;
}

/** A scale by orders of magnitude helps where all is above 0 and differs by a factor of 100. */
export function wantsLog(values: readonly number[]): boolean {
  const low = Math.min(...values);
  return values.length > 1 && low > 0 && Math.max(...values) / low > 100;
}

export interface History {
  x: number[];
  values: (number | null)[];
  best: (number | null)[];
}

/** What each trial came to, and the best until then: of those that have completed and keep all constraints. */
export function historyOf(trials: readonly TrialRow[], maximize: boolean): History {
  const history: History = { x: [], values: [], best: [] };
  let best: number | null = null;
  const inOrder = [...trials].filter((trial) => resultOf(trial) !== null).sort((a, b) => a.number - b.number);
  for (const trial of inOrder) {
    const value = resultOf(trial);
    const counts = trial.state === "completed" && trial.job_id !== "" && (trial.violation ?? 0) <= 0;
    if (value !== null && counts && (best === null || (maximize ? value > best : value < best))) best = value;
    history.x.push(trial.number);
    history.values.push(value);
    history.best.push(best);
  }
  return history;
}
