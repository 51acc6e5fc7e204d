import type { StateTone } from "../../theme/tokens";

export type Outcome = "done" | "refused" | "failed";
export const OUTCOMES: readonly Outcome[] = ["done", "refused", "failed"];

/** What came of a request, by its status. */
export function outcomeOf(status: number): Outcome {
  return status < 400 ? "done" : status < 500 ? "refused" : "failed";
}

/** How an outcome is drawn: like which state of a job, and in which tone. Red is for faults of the server alone. */
export function drawn(outcome: Outcome): { state: string; tone: StateTone } {
  if (outcome === "done") return { state: "completed", tone: "completed" };
  return outcome === "refused" ? { state: "stopped", tone: "waiting" } : { state: "failed", tone: "failed" };
}

export interface Filter {
  who: string | null;
  q: string | null;
  outcome: Outcome | null;
}

/** What the log is asked for, from what stands in the address; what is no outcome is left out. */
export function filterOf(get: (name: string) => string | null): Filter {
  const outcome = OUTCOMES.find((one) => one === get("outcome")) ?? null;
  return { who: get("who")?.trim() || null, q: get("q")?.trim().slice(0, 100) || null, outcome };
}
