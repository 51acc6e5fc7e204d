import { useCallback, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { axis, Plot, type PlotOptions, timeAxis } from "../../components/Plot";
import { useNow } from "../../components/Time";
import { count, duration, time } from "../../format/format";
import { Marks } from "../../slots/Marks";
import { fillOf } from "../../slots/patterns";
import { text } from "../../text";
import type { Tokens } from "../../theme/tokens";
import { isOver, type Job, slotsOf } from "./facts";
import classes from "./Job.module.css";
import { stepsOf } from "./strip";

const words = text.job.slots;
const HEIGHT = 168;
const MARKS = 300;

/** The slots that the job had since it was submitted, with the reason of each change. */
export function SlotStrip({ detail }: { detail: Schemas["JobDetail"] }) {
  const { job } = detail;
  const usage = useGet("/v1/usage", { params: { query: { job_id: job.id } } });
  const marks = useGet("/v1/slots/marks", {
    params: { query: { job_id: job.id, from: Math.max(0, job.submitted_at - 1), limit: MARKS } },
  });
  const ahead = useRef(0);
  if (usage.data !== undefined && usage.dataUpdatedAt > 0) ahead.current = usage.data.now - usage.dataUpdatedAt / 1000;
  const now = useNow() + (Math.abs(ahead.current) > 2 ? ahead.current : 0);
  return (
    <Panel title={words.title} aside={!isOver(job) && <b className="num">{words.now(count(job.num_slots ?? 0))}</b>}>
      <Answer query={usage} rows={1} height={HEIGHT}>
        {(page) =>
          page.points.length === 0 ? (
            <span className="dim">{words.none}</span>
          ) : (
            <Strip job={job} points={page.points} marks={marks.data?.marks ?? []} until={job.ended_at ?? now} />
          )
        }
      </Answer>
      <Caption generations={detail.generations} />
    </Panel>
  );
}

interface Props {
  job: Job;
  points: readonly Schemas["Usage"][];
  marks: readonly Schemas["SlotMark"][];
  until: number;
}

function Strip({ job, points, marks, until }: Props) {
  const [box, setBox] = useState<{ left: number; width: number; from: number; until: number } | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const steps = useMemo(() => stepsOf(points, job.submitted_at, until), [points, job.submitted_at, until]);
  const [, most] = slotsOf(job);
  const data = useMemo(() => [steps.x, steps.slots, steps.x.map(() => most)] as uPlot.AlignedData, [steps, most]);
  const highest = Math.max(most, ...steps.slots);
  const current = useRef({ highest, from: job.submitted_at, until });
  current.current = { highest, from: steps.x[0] ?? job.submitted_at, until: steps.x.at(-1) ?? until };
  const options = (tokens: Tokens): PlotOptions => ({
    padding: [8, 12, 0, 0],
    scales: {
      x: { time: true, range: () => [current.current.from, Math.max(current.current.until, current.current.from + 1)] },
      y: { range: () => [0, current.current.highest * 1.06] },
    },
    axes: [
      timeAxis(tokens, { grid: { show: false } }),
      axis(tokens, {
        size: 40,
        incrs: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        values: (_, ticks) => ticks.map(count),
      }),
    ],
    series: [
      {},
      {
        label: words.held,
        stroke: tokens.surface,
        width: 0,
        fill: (self) => fillOf(self.ctx, tokens, job.colour ?? null),
        paths: stepped,
        points: { show: false },
      },
      { label: words.most, stroke: tokens.dim, width: 1.5, dash: [4, 4], points: { show: false } },
    ],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: {
      setCursor: [(self) => setAt((self.cursor.left ?? -1) < 0 ? null : self.posToVal(self.cursor.left ?? 0, "x"))],
      draw: [
        (self) => {
          const { left, width } = self.bbox;
          const next = {
            left: left / uPlot.pxRatio,
            width: width / uPlot.pxRatio,
            from: self.scales.x?.min ?? 0,
            until: self.scales.x?.max ?? 1,
          };
          setBox((before) =>
            before !== null && Object.values(before).join() === Object.values(next).join() ? before : next,
          );
        },
      ],
    },
  });
  const onPlot = useCallback(() => undefined, []);
  const held = at === null ? null : heldAt(steps.x, steps.slots, at);
  return (
    <div className={classes.strip}>
      <div role="img" aria-label={`${words.plot}: ${sentenceOf(points)}`}>
        <Plot data={data} options={options} shape={`${job.colour}`} height={HEIGHT} onPlot={onPlot} />
      </div>
      {box !== null && <Marks marks={marks} box={box} />}
      {at !== null && (
        <p className={classes.pointed}>
          {time(at)} · {count(held)} {words.held}
        </p>
      )}
    </div>
  );
}

const stepped = uPlot.paths.stepped?.({ align: 1, extend: true });

function heldAt(x: readonly number[], slots: readonly number[], at: number): number {
  const index = x.findLastIndex((from) => from <= at);
  return slots[Math.max(0, index)] ?? 0;
}

/** The newest changes in words. */
function sentenceOf(points: readonly Schemas["Usage"][]): string {
  return points
    .slice(-5)
    .map((point) => `${time(point.at)} ${point.num_slots}`)
    .join(", ");
}

/** How the newest change of size went. */
function Caption({ generations }: { generations: readonly Schemas["Generation"][] }) {
  const newest = [...generations].reverse().find((generation) => generation.switched_at != null);
  if (newest?.switched_at == null) return null;
  const parts = [
    words.caption(newest.members.length, time(newest.switched_at)),
    !newest.pause_s ? null : words.pause(duration(newest.pause_s)),
    newest.step == null ? null : words.step(count(newest.step)),
    words.redone(newest.redone_steps ?? 0),
  ];
  return <p className={classes.caption}>{parts.filter((part) => part !== null).join(", ")}</p>;
}
