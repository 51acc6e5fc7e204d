import type { Schemas } from "../../../api/client";

export type LogFile = Schemas["LogFile"];

/** A log as it stands in the address: task and stream. */
export function nameOf(file: LogFile): string {
  return `${file.task_id}/${file.stream}`;
}

/** The log that is looked at if none was chosen: output of the newest task, or its errors if it has written nothing else. */
export function newestFile(files: readonly LogFile[]): LogFile | null {
  const order = [...files].sort((one, other) => compare(other, one));
  return order.find((file) => file.num_bytes > 0) ?? order[0] ?? null;
}

function compare(one: LogFile, other: LogFile): number {
  const byTask = one.task_id.localeCompare(other.task_id, "en", { numeric: true });
  return byTask !== 0 ? byTask : Number(one.stream === "stdout") - Number(other.stream === "stdout");
}

/** Logs in the order in which they are offered: the newest task first, its output before its errors. */
export function inOrder(files: readonly LogFile[]): LogFile[] {
  return [...files].sort((one, other) => compare(other, one));
}
