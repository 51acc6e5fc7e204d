import { Tooltip } from "@mantine/core";
import { IconCheck, IconInfoCircle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { ProgressBar } from "../../components/Progress";
import { State } from "../../components/State";
import { Swatch } from "../../components/Swatch";
import { count, duration, measure } from "../../format/format";
import { text } from "../../text";
import { fractionOf, isOver, type Job, kindOf, rangeOf, slotsOf } from "./facts";
import classes from "./Job.module.css";

const words = text.job;

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
  const Sign = isExact ? IconCheck : IconInfoCircle;
  const shown = (
    <span className={classes.claim}>
      <Sign size={14} aria-hidden />
      {words.claims[job.claim]} {isExact && words.claimOf(job.spec.virtual_workers)}
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
  const fraction = fractionOf(job);
  const [least, most] = slotsOf(job);
  const over = isOver(job);
  const runs = !over && (job.num_slots ?? 0) > 0;
  const facts: (ReactNode | null)[] = [
    progress == null
      ? null
      : words.progress.epoch(count(Math.min(progress.epoch + 1, progress.num_epochs)), count(progress.num_epochs)),
    progress == null ? null : words.progress.step(count(progress.step), count(progress.num_steps)),
    runs && progress != null && progress.samples_per_s > 0
      ? words.progress.speed(measure(progress.samples_per_s))
      : null,
    progress?.loss == null ? null : words.progress.loss(measure(progress.loss)),
    over ? null : words.progress.slotsOf(count(job.num_slots ?? 0), rangeOf(least, most)),
    words.progress.priority(count(job.priority)),
    over && job.ended_at != null && job.started_at != null
      ? words.progress.took(duration(job.ended_at - job.started_at))
      : null,
  ];
  const left = runs && progress?.eta_s != null ? words.progress.left(duration(progress.eta_s)) : null;
  return (
    <section className={classes.progress} aria-label={words.progress.label}>
      {fraction !== null && (
        <div className={classes.progressBar}>
          <ProgressBar fraction={fraction} label={words.progress.label} tall />
          {left !== null && <b className="num">{left}</b>}
        </div>
      )}
      <ul className={classes.facts}>{facts.map((fact) => fact !== null && <li key={String(fact)}>{fact}</li>)}</ul>
    </section>
  );
}
