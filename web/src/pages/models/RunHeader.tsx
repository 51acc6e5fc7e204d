import { Progress } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { type Fact, Figures } from "../../components/Facts";
import { useNow } from "../../components/Time";
import { count, duration, measure, NONE, percent } from "../../format/format";
import { text } from "../../text";
import type { Training } from "./lists";
import classes from "./models.module.css";
import { epochOf, shareOf } from "./progress";
import { TrainingState } from "./TrainingState";

const words = text.models.training;

/** How far a training is: its job, workers and state, and how much of its time and its iterations are over. */
export function RunHeader({ training, live }: { training: Training; live: boolean }) {
  const mayRead = useMay("jobs:read") && training.job_id !== "" && training.state !== "removed";
  const init = { params: { path: { job_id: training.job_id } } };
  const job = useGet("/v1/jobs/{job_id}", init, { enabled: mayRead, retry: false });
  const why = useGet("/v1/jobs/{job_id}/why", init, { enabled: mayRead && live, retry: false });
  const { progress, settings } = training;
  const slots = job.data?.job.num_slots ?? 0;
  const claim = job.data?.job.claim ?? null;
  const share = shareOf(progress);
  const workers = live ? Math.round(slots / settings.slots_per_worker) : null;
  const figures: Fact[] = [
    { label: words.done, value: percent(share) },
    { label: words.state, value: <TrainingState state={training.state} /> },
    {
      label: words.workers,
      value: workers === null ? count(settings.max_workers) : words.ofMost(count(workers), count(settings.max_workers)),
    },
    {
      label: words.job,
      value:
        job.data !== undefined ? (
          <Link to={`/jobs/${training.job_id}`} className={classes.rowLink}>
            {training.job_id}
          </Link>
        ) : (
          training.job_id || NONE
        ),
    },
    ...(claim === null
      ? []
      : [
          {
            label: words.mode,
            value: <span title={job.data?.job.claim_reason || (claim === "exact" ? words.exact : "")}>{claim}</span>,
          },
        ]),
  ];
  const sentence = training.reason || (live ? why.data?.sentence : "");
  return (
    <section className={classes.run} aria-label={words.header}>
      <Figures figures={figures} />
      <div className={classes.column}>
        <TimePart job={job.data?.job ?? null} left={live ? (progress?.eta_s ?? null) : null} live={live} />
        <Part
          label={words.iterations}
          share={share}
          value={
            progress === null
              ? NONE
              : [
                  words.epochOf(count(epochOf(progress)), count(progress.num_epochs)),
                  words.stepOf(count(progress.step), count(progress.num_steps)),
                  ...(live ? [words.speed(measure(progress.samples_per_s))] : []),
                ].join(" · ")
          }
        />
      </div>
      {sentence && (
        <p className={`${classes.why} wrap`}>
          <span className="dim">{words.why}:</span> {sentence}
        </p>
      )}
    </section>
  );
}

interface TimeProps {
  job: { started_at?: number | null; ended_at?: number | null } | null;
  left: number | null;
  live: boolean;
}

function TimePart({ job, left, live }: TimeProps) {
  const now = useNow();
  const started = job?.started_at ?? null;
  if (started === null) return <Part label={words.time} share={null} value={NONE} />;
  const done = Math.max(0, (job?.ended_at ?? now) - started);
  if (!live) return <Part label={words.time} share={1} value={words.timeAll(duration(done))} />;
  if (left === null) return <Part label={words.time} share={null} value={words.timeOnly(duration(done))} />;
  return <Part label={words.time} share={done / (done + left)} value={words.timeOf(duration(done), duration(left))} />;
}

function Part({ label, share, value }: { label: string; share: number | null; value: ReactNode }) {
  return (
    <div className={classes.part}>
      <div>
        <span>{label}</span>
        <span className="dim">{value}</span>
      </div>
      <Progress.Root size={8}>
        <Progress.Section value={100 * (share ?? 0)} aria-label={label} />
      </Progress.Root>
    </div>
  );
}
