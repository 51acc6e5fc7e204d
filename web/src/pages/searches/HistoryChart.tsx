import { useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { axis, Plot, type PlotOptions, sizeOfAxis } from "../../components/Plot";
import { measure, measures } from "../../format/format";
import { text } from "../../text";
import type { Tokens } from "../../theme/tokens";
import classes from "./Searches.module.css";
import type { History } from "./shown";
import { viewOf } from "./view";

const words = text.searches.overview;

interface Props {
  history: History;
  log: boolean;
  metric: string;
  height?: number;
}

/** A dot for what each trial came to, and a line for the best until then. */
export function HistoryChart({ history, log, metric, height = 220 }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const data = useMemo(() => {
    const shown = (value: number | null) => (log && value !== null && value <= 0 ? null : value);
    return [history.x, history.values.map(shown), history.best.map(shown)] as uPlot.AlignedData;
  }, [history, log]);
  const stepped = useRef(uPlot.paths.stepped?.({ align: 1 }));
  const view = viewOf(history.values.filter((value): value is number => value !== null));
  const margin = 0.06 * (view.high - view.low);
  const low = log ? (view.low > 0 ? view.low : view.high / 1000) * 0.8 : view.low - margin;
  const high = log ? view.high * 1.25 : view.high + margin;
  const options = (tokens: Tokens): PlotOptions => ({
    scales: { x: { time: false }, y: log ? { distr: 3, range: () => [low, high] } : { range: () => [low, high] } },
    axes: [
      axis(tokens, {
        size: 30,
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : "")),
      }),
      axis(tokens, { size: sizeOfAxis, values: (_, ticks) => measures(ticks) }),
    ],
    series: [
      {},
      {
        label: metric,
        stroke: tokens.work[0] ?? tokens.accent,
        paths: () => null,
        points: { show: true, size: 5, fill: tokens.work[0] ?? tokens.accent, width: 0 },
      },
      {
        label: words.best,
        stroke: tokens.work[1] ?? tokens.accent,
        width: 2,
        points: { show: false },
        ...(stepped.current && { paths: stepped.current }),
      },
    ],
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { setCursor: [(plot) => setAt(plot.cursor.idx ?? null)] },
  });
  const index = at !== null && at < history.x.length ? at : history.x.length - 1;
  if (history.x.length === 0) {
    return (
      <div className="dim" style={{ height, display: "grid", placeItems: "center" }}>
        {text.chart.nothing}
      </div>
    );
  }
  const best = history.best[index];
  return (
    <figure style={{ margin: 0 }} aria-label={`${words.history}: ${metric} ${measure(history.best.at(-1))}`}>
      <Plot data={data} options={options} shape={`${log}|${metric}|${low}|${high}`} height={height} />
      <ul className={classes.legend}>
        <li className="dim">
          {words.trial} {history.x[index]}
        </li>
        <li>
          <span style={{ width: 8, height: 8, borderRadius: 4, background: "var(--work-0)" }} aria-hidden />
          {words.value} <b className="num">{measure(history.values[index])}</b>
        </li>
        <li>
          <span style={{ width: 12, height: 3, borderRadius: 2, background: "var(--work-1)" }} aria-hidden />
          {words.best} <b className="num">{measure(best)}</b>
        </li>
        {view.outside > 0 && <li className="dim">{words.outside(view.outside)}</li>}
      </ul>
    </figure>
  );
}
