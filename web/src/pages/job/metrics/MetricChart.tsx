import { useElementSize, useIntersection, useMergedRef } from "@mantine/hooks";
import { useQueries } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { call, type Schemas } from "../../../api/client";
import { type Line, LineChart } from "../../../components/LineChart";
import { text } from "../../../text";
import { isOver } from "../facts";
import { type Axis, aligned, type Bucket, curveOf, type Scale, smoothed, stepsBetween } from "./curves";
import classes from "./Metrics.module.css";

const words = text.job.metrics;
/** Metrics are no events: there are too many. */
const WHILE_RUNNING_MS = 2000;
const WIDTH_STEP = 100;
const HEIGHT = 200;

export interface Shown {
  job: Schemas["Job"];
  perEpoch: number | null;
}

interface Props {
  name: string;
  jobs: readonly Shown[];
  axis: Axis;
  weight: number;
  log: boolean;
  /** The steps that are looked at; null: all. */
  zoom: readonly [number, number] | null;
  onZoom: (steps: readonly [number, number] | null) => void;
}

const NOTHING: readonly Bucket[] = [];

/** One series, of one job or of several; it is asked for when it is looked at, in as many buckets as it is wide. */
export function MetricChart({ name, jobs, axis, weight, log, zoom, onZoom }: Props) {
  const { ref: measured, width } = useElementSize();
  const { ref: watched, entry } = useIntersection({ rootMargin: "200px" });
  const ref = useMergedRef(measured, watched);
  const isSeen = entry?.isIntersecting ?? false;
  const wasSeen = useRef(false);
  wasSeen.current ||= isSeen;
  const buckets = Math.max(WIDTH_STEP, Math.ceil(width / WIDTH_STEP) * WIDTH_STEP);
  const answers = useQueries({
    queries: jobs.map(({ job }) => {
      const query = {
        name: [name],
        max_buckets: buckets,
        ...(zoom !== null && { first_step: zoom[0], last_step: zoom[1] }),
      };
      const init = { params: { path: { job_id: job.id }, query } };
      return {
        queryKey: ["get", "/v1/jobs/{job_id}/chart", init],
        queryFn: ({ signal }: { signal: AbortSignal }) => call("get", "/v1/jobs/{job_id}/chart", init, signal),
        enabled: wasSeen.current && width > 0,
        refetchInterval: isSeen && !isOver(job) ? WHILE_RUNNING_MS : (false as const),
        placeholderData: (before: Schemas["ChartPage"] | undefined) => before,
      };
    }),
  });
  const parts = answers.map((answer) => answer.data?.series[0]?.buckets ?? NOTHING);
  const scales = jobs.map((shown): Scale => {
    const several = jobs.length > 1;
    return {
      axis,
      startedAt: several ? (shown.job.started_at ?? shown.job.submitted_at) : null,
      stepsPerEpoch: shown.perEpoch,
    };
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the lists themselves are new at every render
  const { x, lines } = useMemo(() => linesOf(jobs, parts, scales, weight, log), [jobs, axis, weight, log, ...parts]);
  const zoomTo = (range: readonly [number, number] | null) => {
    if (range === null) return onZoom(null);
    const [first = NOTHING] = parts;
    const [scale] = scales;
    const steps = scale === undefined ? null : stepsBetween(first, scale, range);
    if (steps !== null) onZoom(steps);
  };
  const isClock = axis === "time" && jobs.length === 1;
  return (
    <div ref={ref} className={classes.chart}>
      <LineChart
        title={name}
        x={x}
        lines={lines}
        over={isClock ? "time" : "number"}
        xName={axis === "time" ? `${words.xName.time} s` : (words.xName[axis] ?? axis)}
        log={log}
        height={HEIGHT}
        sync={`metrics-${axis}`}
        onZoom={zoomTo}
      />
    </div>
  );
}

/** The lines of a chart: of every job its values, smoothed if asked, with what they are made of faint behind them. */
function linesOf(
  jobs: readonly Shown[],
  parts: readonly (readonly Bucket[])[],
  scales: readonly Scale[],
  weight: number,
  log: boolean,
): { x: number[]; lines: Line[] } {
  const lines: Omit<Line, "values">[] = [];
  const lists: { x: readonly number[]; values: readonly (number | null)[] }[] = [];
  jobs.forEach(({ job }, index) => {
    const scale = scales[index];
    if (scale === undefined) return;
    const curve = curveOf(parts[index] ?? NOTHING, scale);
    const colour = job.colour ?? index;
    const add = (name: string, values: readonly (number | null)[], faint: boolean) => {
      lines.push({ name, colour, faint });
      lists.push({
        x: curve.x,
        values: log ? values.map((value) => (value !== null && value > 0 ? value : null)) : values,
      });
    };
    if (weight > 0) add(`${job.id} ${words.raw}`, curve.mean, true);
    else if (curve.isMean) {
      add(`${job.id} ${words.lowest}`, curve.lowest, true);
      add(`${job.id} ${words.highest}`, curve.highest, true);
    }
    add(job.id, smoothed(curve.mean, weight), false);
  });
  const { x, values } = aligned(lists);
  return { x, lines: lines.map((line, index) => ({ ...line, values: values[index] ?? [] })) };
}
