/** A job as the command line that submits it again from the folder of its code: only what is not the default. */
import type { Schemas } from "../../api/client";
import { commandOf } from "../submit/command";
import { type FieldName, type Typed, typedOfJob } from "../submit/fields";
import { timeText } from "../submit/units";

/** What a submission is if nothing is said, as one would type it. */
const USUAL: Typed = {
  min_tasks: "1",
  max_tasks: "1",
  priority: "5000",
  queue: "default",
  slots_per_task: "1",
  balance: "even",
  mode: "exact",
  fixed: "false",
  max_restarts: "3",
  start_timeout_s: timeText(600),
  on_stall: "warn",
  checkpoint_freq: "1",
  checkpoint_every_s: "600",
  tracking: "true",
  audit: "false",
  notify_on: "end",
};

export function commandLine(job: Schemas["Job"]): string {
  const typed = Object.entries(typedOfJob(job)).filter(([name, text]) => USUAL[name as FieldName] !== text);
  return commandOf({ kind: "code", path: ".", script: null, base: {} }, Object.fromEntries(typed));
}
