/** What is to be deployed, as the server takes it and as a command line. */
import { quoteWord } from "../submit/words";

export interface Wish {
  name: string;
  job: string;
  /** What to run in a folder; empty: it is looked for. */
  file: string;
  /** Null: as it is, or the usual. */
  min: number | null;
  max: number | null;
  slots: number | null;
  queue: string | null;
  /** Percent; 100: it takes all. */
  traffic: number | null;
}

/** The body of a deployment; of a folder, by its name, or of the job. */
export function deploymentOf(wish: Wish, folder: string | null): Record<string, unknown> {
  return {
    ...(folder === null
      ? { job: wish.job }
      : { source: folder, ...(wish.file.trim() !== "" && { file: wish.file.trim() }) }),
    ...(wish.min !== null && { kernel_min: wish.min }),
    ...(wish.max !== null && { kernel_max: wish.max }),
    ...(wish.slots !== null && { slots_per_task: wish.slots }),
    ...(wish.queue !== null && { queue: wish.queue }),
    ...(wish.traffic !== null && wish.traffic < 100 && { traffic: wish.traffic }),
  };
}

export function deployCommand(source: string, wish: Wish): string {
  const what = source.startsWith("-") ? `./${source}` : source;
  return [
    `pliant deploy ${quoteWord(what)}`,
    ...(wish.name !== "" ? [`--name ${quoteWord(wish.name)}`] : []),
    ...(wish.file.trim() !== "" ? [`--file ${quoteWord(wish.file.trim())}`] : []),
    ...(wish.min !== null ? [`--min ${wish.min}`] : []),
    ...(wish.max !== null ? [`--max ${wish.max}`] : []),
    ...(wish.slots !== null ? [`--slots-per-task ${wish.slots}`] : []),
    ...(wish.queue !== null ? [`--queue ${quoteWord(wish.queue)}`] : []),
    ...(wish.traffic !== null && wish.traffic < 100 ? [`--traffic ${wish.traffic}`] : []),
  ].join(" ");
}
