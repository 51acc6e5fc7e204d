import { SegmentedControl, Switch, Text } from "@mantine/core";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { LineChart } from "../../components/LineChart";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import type { Training } from "./lists";
import classes from "./models.module.css";
import { type Charted, chartsOf, joined, type Over } from "./series";

const words = text.models.training;
const OVERS: readonly Over[] = ["step", "epoch", "time"];
const MOST_CHARTS = 12;

/** The charts of a training: loss, accuracy, whatever else its script has logged, and its iterations over time. */
export function TrainingCharts({ training, live }: { training: Training; live: boolean }) {
  const address = useAddress();
  const enabled = useMay("jobs:read") && training.job_id !== "" && training.state !== "removed";
  const over = OVERS.find((one) => one === address.get("over")) ?? "step";
  const log = address.get("log") !== null;
  const chart = useGet(
    "/v1/jobs/{job_id}/chart",
    { params: { path: { job_id: training.job_id }, query: { max_buckets: 500 } } },
    // metrics are no events: there are too many
    { enabled, refetchInterval: live ? 3000 : false, keepPrevious: true, retry: false },
  );
  if (!enabled) return <Text c="dimmed">{words.noMetrics}</Text>;
  if (chart.error?.status === 404) return <Text c="dimmed">{words.jobNotShared(training.job_id)}</Text>;
  return (
    <Panel
      title={words.course}
      aside={
        <div className={classes.bar}>
          <Switch
            size="xs"
            label={words.log}
            checked={log}
            onChange={(event) => address.set({ log: event.currentTarget.checked ? "1" : null })}
          />
          <SegmentedControl
            aria-label={words.over}
            data={OVERS.map((one) => ({ value: one, label: words.overs[one] ?? one }))}
            value={over}
            onChange={(value) => address.set({ over: value === "step" ? null : value })}
          />
        </div>
      }
    >
      <Answer query={chart} rows={4} height={80}>
        {({ series }) => <Charts series={series} over={over} log={log} />}
      </Answer>
    </Panel>
  );
}

interface ChartsProps {
  series: readonly Schemas["Series"][];
  over: Over;
  log: boolean;
}

function Charts({ series, over, log }: ChartsProps) {
  const charted = useMemo(() => chartsOf(series.map((one) => one.name)).slice(0, MOST_CHARTS), [series]);
  if (series.length === 0) return <Text c="dimmed">{words.noMetrics}</Text>;
  return (
    <div className={classes.charts}>
      {charted.map((one) => (
        <Chart key={one.title} charted={one} series={series} over={over} log={log} />
      ))}
      <StepsOverTime series={series} />
    </div>
  );
}

interface ChartProps extends ChartsProps {
  charted: Charted;
}

function Chart({ charted, series, over, log }: ChartProps) {
  const { x, lines } = useMemo(() => {
    const of = charted.names.map((name) => series.find((one) => one.name === name)).filter((one) => one !== undefined);
    const table = joined(of, over);
    return { x: table.x, lines: of.map((one, at) => ({ name: one.name, colour: at, values: table.values[at] ?? [] })) };
  }, [series, over, charted]);
  const canLog = lines.every((line) => line.values.every((value) => value == null || value > 0));
  return (
    <LineChart
      title={words.charts[charted.title] ?? charted.title}
      x={x}
      lines={lines}
      over={over === "time" ? "time" : "number"}
      xName={over === "time" ? undefined : words.xNames[over]}
      log={log && canLog}
      sync={over}
    />
  );
}

function StepsOverTime({ series }: { series: readonly Schemas["Series"][] }) {
  const { x, lines } = useMemo(() => {
    const longest = series.reduce((most, one) => (one.buckets.length > most.buckets.length ? one : most));
    return {
      x: longest.buckets.map((bucket) => bucket.at),
      lines: [{ name: words.steps, colour: 4, values: longest.buckets.map((bucket) => bucket.last_step) }],
    };
  }, [series]);
  return <LineChart title={words.charts.steps ?? ""} x={x} lines={lines} />;
}
