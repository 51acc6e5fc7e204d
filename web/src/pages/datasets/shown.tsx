import type { Schemas } from "../../api/client";
import { State } from "../../components/State";
import { percent } from "../../format/format";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";

export type Dataset = Schemas["Dataset"];

const words = text.datasets;
const SHOWN: Record<string, { state: string; tone: StateTone }> = {
  importing: { state: "starting", tone: "starting" },
  ready: { state: "completed", tone: "completed" },
  failed: { state: "failed", tone: "failed" },
  stopped: { state: "stopped", tone: "stopped" },
};

/** The state of a data set; while it is imported with how far that is. */
export function DatasetState({ dataset }: { dataset: Dataset }) {
  const state = dataset.state ?? "importing";
  const share = shareOf(dataset);
  const word = words.states[state] ?? state;
  const shown = SHOWN[state];
  return (
    <State
      state={shown?.state ?? state}
      tone={shown?.tone}
      word={state === "importing" && share !== null ? `${word} ${percent(share)}` : word}
    />
  );
}

/** How much of an import is done; null if nobody knows. */
export function shareOf(dataset: Dataset): number | null {
  const progress = dataset.progress;
  if (!progress) return null;
  if (progress.files_total) return Math.min(1, (progress.files_done ?? 0) / progress.files_total);
  if (progress.bytes_total) return Math.min(1, (progress.bytes_done ?? 0) / progress.bytes_total);
  return null;
}

/** Pictures, rows or files, of all parts together; null if they were not counted. */
export function samplesOf(dataset: Dataset): number | null {
  const splits = Object.values(dataset.content?.splits ?? {});
  if (dataset.state !== "ready" || splits.length === 0) return null;
  return splits.reduce((sum, value) => sum + value, 0);
}

/** What is in a data set, as far as it is known. */
export function insideOf(dataset: Dataset): Partial<Schemas["Content"]> {
  return dataset.content ?? {};
}
