import { Button } from "@mantine/core";
import { IconStack } from "@tabler/icons-react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Empty, Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { State } from "../../components/State";
import { Age, Time } from "../../components/Time";
import { NONE } from "../../format/format";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";
import { isOver } from "./facts";
import classes from "./Job.module.css";

const words = text.job.workers;
const TONES: Record<Schemas["TaskState"], { state: string; tone: StateTone }> = {
  starting: { state: "starting", tone: "starting" },
  warm: { state: "starting", tone: "starting" },
  training: { state: "running", tone: "running" },
  leaving: { state: "stopping", tone: "waiting" },
  exited: { state: "completed", tone: "stopped" },
  lost: { state: "failed", tone: "failed" },
};

/** The tasks of the job: where they are, what they do, and in which line they are. */
export default function Workers({ detail }: { detail: Schemas["JobDetail"] }) {
  const { job, tasks } = detail;
  const newest = [...tasks].reverse();
  const live = newest.filter((task) => task.ended_at == null);
  const past = newest.filter((task) => task.ended_at != null);
  const mayAsk = useMay("jobs:write");
  const owns = useOwns(job.owner);
  if (tasks.length === 0) return <Empty title={words.none} hint={words.noneHint} command={`pliant why ${job.id}`} />;
  return (
    <>
      {live.length > 0 && (
        <Panel title={words.live} aside={mayAsk && owns && !isOver(job) && <AskStacks id={job.id} />}>
          <Tasks tasks={live} label={words.live} />
        </Panel>
      )}
      <Stacks id={job.id} />
      {past.length > 0 && (
        <Panel title={words.past}>
          <Tasks tasks={past} label={words.past} past />
        </Panel>
      )}
    </>
  );
}

const { columns } = words;
type Task = Schemas["Task"];
const WHERE: readonly ShortColumn<Task>[] = [
  {
    title: columns.task,
    tight: true,
    cell: (task) => (
      <Link to={`/jobs/${task.job_id}/logs?log=${encodeURIComponent(`${task.id}/stdout`)}`}>{task.id}</Link>
    ),
  },
  {
    title: columns.state,
    cell: ({ state }) => <State state={TONES[state].state} tone={TONES[state].tone} word={words.states[state]} />,
  },
  { title: columns.node, cell: (task) => task.node_id },
  { title: columns.slots, cell: (task) => task.slots.join(", ") || NONE },
  { title: columns.started, tight: true, cell: (task) => <Time at={task.started_at} /> },
  {
    title: columns.lasted,
    numeric: true,
    cell: (task) => <Age since={task.started_at} until={task.ended_at ?? null} />,
  },
];
const LIVE = [...WHERE, { title: columns.pid, numeric: true, cell: (task: Task) => task.pid ?? NONE }];
const PAST = [
  ...WHERE,
  { title: columns.exit, numeric: true, cell: (task: Task) => task.exit_code ?? NONE },
  { title: columns.reason, cell: (task: Task) => task.reason || NONE },
];

function Tasks({ tasks, label, past = false }: { tasks: readonly Task[]; label: string; past?: boolean }) {
  return <ShortTable label={label} columns={past ? PAST : LIVE} rows={tasks} rowId={(task) => task.id} />;
}

function AskStacks({ id }: { id: string }) {
  const canChange = useCanChange();
  const change = useChange("post", "/v1/jobs/{job_id}/stacks");
  return (
    <div>
      <Button
        variant="default"
        leftSection={<IconStack size={16} />}
        disabled={!canChange}
        loading={change.isPending}
        onClick={() => change.mutate({ params: { path: { job_id: id } } })}
      >
        {words.stacks}
      </Button>
      {change.data !== undefined && (
        <p role="status">
          {change.data.answer === "stderr" ? words.stacksInLog : words.stacksAsked(change.data.task_ids.length)}
        </p>
      )}
      {change.error !== null && <Problem error={change.error} />}
    </div>
  );
}

/** The newest answer of every task to where it is. */
function Stacks({ id }: { id: string }) {
  const events = useGet("/v1/events", {
    params: { query: { job_id: id, kind: ["task.stacks"], order: "newest", limit: 50 } },
  });
  const newest = new Map<string, Schemas["Event"]>();
  for (const event of [...(events.data?.events ?? [])].reverse()) newest.set(event.task_id ?? "", event);
  if (newest.size === 0) return null;
  return (
    <Panel title={words.stacksTitle}>
      {[...newest.values()].reverse().map((event) => (
        <div key={event.seq}>
          <p className="wrap">
            <Time at={event.at} /> {event.message}
          </p>
          {typeof event.data?.stacks === "string" && (
            <section className={classes.stack} tabIndex={0} aria-label={event.task_id ?? words.stacksTitle}>
              {event.data.stacks}
            </section>
          )}
        </div>
      ))}
    </Panel>
  );
}
