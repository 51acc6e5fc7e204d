import { Tooltip } from "@mantine/core";
import { IconCheck, IconInfoCircle } from "@tabler/icons-react";
import { Link } from "react-router";
import { type Fact, Figures } from "../../components/Facts";
import { ProgressBar } from "../../components/Progress";
import { State } from "../../components/State";
import { Swatch } from "../../components/Swatch";
import { count, duration, measure } from "../../format/format";
import { text } from "../../text";
import { fractionOf, isOver, type Job, kindOf, rangeOf, slotsOf } from "./facts";
import classes from "./Job.module.css";

const words = text.job;
const said = words.progress;

/** Which job it is, its state, whose, and what is claimed of its samples. */
export function Header({ job }: { job: Job }) {
  const [least, most] = slotsOf(job);
  const search = job.spec.trial?.search;
  return (
    <span className={classes.heading}>
      <Link to="/jobs" className={classes.crumb}>
        {words.jobs}
      </Link>
      <span className="dim" aria-hidden>
        ›
      </span>
      <Swatch colour={job.colour ?? null} size={14} />
      <span>{job.id}</span>
      <bdi className={classes.name} title={job.spec.name}>
        {job.spec.name}
      </bdi>
      <span className={classes.meta}>
        <State state={job.state} />
        <span className="wrap">{job.owner}</span>
        <Link to={`/queues/${encodeURIComponent(job.queue ?? "default")}`} className="wrap">
          {words.queue(job.queue ?? "default")}
        </Link>
        {search != null && <Link to={`/searches/${encodeURIComponent(search)}`}>{words.search(search)}</Link>}
        <span>
          {words.kinds[kindOf(job)]} {rangeOf(least, most)}
        </span>
        <Claim job={job} />
      </span>
    </span>
  );
}

function Claim({ job }: { job: Job }) {
  if (job.claim == null) return null;
  const isExact = job.claim === "exact";
  const parts = job.progress?.virtual_workers ?? job.spec.virtual_workers;
  const Sign = isExact ? IconCheck : IconInfoCircle;
  const shown = (
    <span className={classes.claim}>
      <Sign size={14} aria-hidden />
      {words.claims[job.claim]} {isExact && parts != null && words.claimOf(parts)}
    </span>
  );
  if (!job.claim_reason) return shown;
  return (
    <Tooltip label={job.claim_reason}>
      <span tabIndex={0} role="note" aria-label={`${words.claims[job.claim]}: ${job.claim_reason}`}>
        {shown}
      </span>
    </Tooltip>
  );
}

/** How far it is, how fast, and when it will be done. */
export function ProgressLine({ job }: { job: Job }) {
  const progress = job.progress;
  const [least, most] = slotsOf(job);
  const over = isOver(job);
  const runs = !over && (job.num_slots ?? 0) > 0;
  const facts: (Fact | null)[] = [
    progress == null || job.state === "completed" ? null : { label: said.label, value: <HowFar job={job} /> },
    over && job.ended_at != null && job.started_at != null
      ? { label: said.took, value: duration(job.ended_at - job.started_at) }
      : null,
    over ? null : { label: said.slots, value: said.of(count(job.num_slots ?? 0), rangeOf(least, most)) },
    progress == null
      ? null
      : {
          label: said.epoch,
          value: said.of(count(Math.min(progress.epoch + 1, progress.num_epochs)), count(progress.num_epochs)),
        },
    progress == null ? null : { label: said.step, value: said.of(count(progress.step), count(progress.num_steps)) },
    runs && progress != null && progress.samples_per_s > 0
      ? { label: said.speed, value: measure(progress.samples_per_s) }
      : null,
    progress?.loss == null ? null : { label: said.loss, value: measure(progress.loss) },
    { label: said.priority, value: count(job.priority) },
  ];
  return <Figures figures={facts.filter((fact) => fact !== null)} />;
}

/** The share that is done, and the time that is left. */
function HowFar({ job }: { job: Job }) {
  const fraction = fractionOf(job);
  const over = isOver(job);
  const left = !over && (job.num_slots ?? 0) > 0 ? job.progress?.eta_s : null;
  return (
    <span className={classes.howFar}>
      {fraction !== null && <ProgressBar fraction={fraction} label={said.label} tall over={over} />}
      {left != null && <span className={classes.left}>{said.left(duration(left))}</span>}
    </span>
  );
}
