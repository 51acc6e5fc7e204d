import { Button } from "@mantine/core";
import { IconStack } from "@tabler/icons-react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Empty, Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
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
          <Tasks id={job.id} tasks={live} label={words.live} />
        </Panel>
      )}
      <Stacks id={job.id} />
      {past.length > 0 && (
        <Panel title={words.past}>
          <Tasks id={job.id} tasks={past} label={words.past} />
        </Panel>
      )}
    </>
  );
}

function Tasks({ id, tasks, label }: { id: string; tasks: readonly Schemas["Task"][]; label: string }) {
  const ended = tasks.some((task) => task.ended_at != null);
  const columns = words.columns;
  return (
    <section className={classes.box} tabIndex={0} aria-label={label}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{columns.task}</th>
            <th scope="col">{columns.state}</th>
            <th scope="col">{columns.node}</th>
            <th scope="col">{columns.slots}</th>
            <th scope="col">{columns.started}</th>
            <th scope="col" className="num">
              {columns.lasted}
            </th>
            <th scope="col" className="num">
              {ended ? columns.exit : columns.pid}
            </th>
            {ended && <th scope="col">{columns.reason}</th>}
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.id}>
              <th scope="row" style={{ whiteSpace: "nowrap" }}>
                <Link to={`/jobs/${id}/logs?log=${encodeURIComponent(`${task.id}/stdout`)}`}>{task.id}</Link>
              </th>
              <td>
                <State state={TONES[task.state].state} tone={TONES[task.state].tone} word={words.states[task.state]} />
              </td>
              <td className="wrap">{task.node_id}</td>
              <td>{task.slots.join(", ") || NONE}</td>
              <td style={{ whiteSpace: "nowrap" }}>
                <Time at={task.started_at} />
              </td>
              <td className="num">
                <Age since={task.started_at} until={task.ended_at ?? null} />
              </td>
              <td className="num">{ended ? (task.exit_code ?? NONE) : (task.pid ?? NONE)}</td>
              {ended && <td className="wrap">{task.reason || NONE}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
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
