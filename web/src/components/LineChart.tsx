import { useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { measure, measures, NONE, time } from "../format/format";
import { text } from "../text";
import type { Tokens } from "../theme/tokens";
import { hueOf } from "../theme/tokens";
import classes from "./LineChart.module.css";
import { axis, Plot, type PlotOptions, sizeOfAxis, timeAxis } from "./Plot";

export interface Line {
  name: string;
  /** The number of a workload's colour, or null for the first hues in order. */
  colour: number | null;
  /** null: no number; undefined: this line has nothing at that place, others have. */
  values: readonly (number | null | undefined)[];
  /** Drawn thin and pale behind the others, such as what was smoothed. */
  faint?: boolean;
  dashed?: boolean;
}

interface Props {
  title: string;
  /** Ascending; seconds since the epoch if `over` is "time". */
  x: readonly number[];
  lines: readonly Line[];
  over?: "time" | "number";
  /** What `x` counts, such as "step". */
  xName?: string;
  /** How a value is written. */
  write?: (value: number | null) => string;
  log?: boolean;
  height?: number;
  /** Nothing is drawn where a value is null; else the line goes on to the next one. */
  gaps?: boolean;
  /** Charts of one name move their cursors together. */
  sync?: string;
  /** Called with what was dragged over; null: all of it. */
  onZoom?: (range: readonly [number, number] | null) => void;
}

/** Lines over time or steps, with their values under the pointer, and as a table for who does not see them. */
export function LineChart(props: Props) {
  const {
    title,
    x,
    lines,
    over = "time",
    write = measure,
    log = false,
    height = 200,
    gaps = false,
    sync,
    onZoom,
  } = props;
  const [at, setAt] = useState<number | null>(null);
  const id = useId();
  const data = useMemo(() => [x, ...lines.map((line) => line.values)] as uPlot.AlignedData, [x, lines]);
  const names = lines.map((line) => `${line.name}${line.colour}${line.faint}${line.dashed}`).join("|");
  const isWhole = useMemo(() => over === "number" && x.every(Number.isInteger), [over, x]);
  const calls = useRef({ write, onZoom });
  calls.current = { write, onZoom };
  const options = (tokens: Tokens): PlotOptions => ({
    scales: { x: { time: over === "time" }, y: log ? { distr: 3 } : { range: rangeOf } },
    axes: [
      over === "time"
        ? timeAxis(tokens)
        : axis(tokens, { size: 30, ...(isWhole && { incrs: WHOLE_STEPS }), values: (_, ticks) => measures(ticks) }),
      axis(tokens, {
        size: sizeOfAxis,
        ...(log && { grid: { stroke: tokens.border, width: 1, filter: wholePowers } }),
        values: (_, ticks) =>
          calls.current.write === measure
            ? measures(ticks)
            : ticks.map((tick) => (tick === null ? "" : calls.current.write(tick))),
      }),
    ],
    series: [
      {},
      ...lines.map((line, index) => ({
        label: line.name,
        stroke: colourOf(tokens, line.colour ?? index) + (line.faint ? "55" : ""),
        width: line.faint ? 1 : 1.75,
        dash: DASHES[dashOf(lines, index)] ?? [],
        points: { show: x.length < 2 },
        spanGaps: !gaps,
      })),
    ],
    cursor: {
      ...(sync !== undefined && { sync: { key: sync } }),
      drag: { x: onZoom !== undefined, y: false, setScale: false },
      y: false,
    },
    hooks: {
      setCursor: [(plot) => setAt(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          if (plot.select.width < 4) return;
          const from = plot.posToVal(plot.select.left, "x");
          const to = plot.posToVal(plot.select.left + plot.select.width, "x");
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          calls.current.onZoom?.([from, to]);
        },
      ],
    },
  });
  const index = at ?? x.length - 1;
  const where = x[index];
  return (
    <figure className={classes.chart} aria-labelledby={id}>
      <figcaption className={classes.caption}>
        <span id={id} className={classes.title}>
          {title}
        </span>
        <span className="dim num">
          {where === undefined ? NONE : over === "time" ? time(where) : `${props.xName ?? ""} ${measure(where)}`}
        </span>
        <ul className={classes.legend}>
          {lines
            .map((line, number) => ({ line, number }))
            .filter(({ line }) => !line.faint)
            .map(({ line, number }) => (
              <li key={line.name}>
                <span
                  className={classes.key}
                  data-dash={dashOf(lines, number)}
                  style={{ background: `var(--work-${hueOf(line.colour ?? number)})` }}
                  aria-hidden
                />
                <span className="cut">{line.name}</span>
                <b className="num">{write(valueAt(line.values, index))}</b>
              </li>
            ))}
        </ul>
      </figcaption>
      {x.length === 0 ? (
        <div className={classes.nothing} style={{ height }}>
          {text.chart.nothing}
        </div>
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: the keys are a second way to what buttons do
        <div onDoubleClick={() => onZoom?.(null)}>
          <Plot
            data={data}
            options={options}
            shape={`${names}|${over}|${log}|${sync}|${x.length < 2}|${isWhole}`}
            height={height}
          />
        </div>
      )}
    </figure>
  );
}

/** Steps and epochs are counted: between two of them there is nothing. */
const WHOLE_STEPS = [1, 2, 5]
  .flatMap((first) => Array.from({ length: 9 }, (_, zeros) => first * 10 ** zeros))
  .sort((one, other) => one - other);

const DASHES = [[], [6, 4], [2, 3]];

/** How a line is dashed: as it is asked for, or so that it is told from those of its hue before it; faint ones never. */
function dashOf(lines: readonly Line[], index: number): number {
  const hueAt = (at: number) => hueOf(lines[at]?.colour ?? at);
  if (lines[index]?.faint) return 0;
  if (lines[index]?.dashed) return 1;
  const before = lines.filter((line, at) => at < index && !line.faint && !line.dashed && hueAt(at) === hueAt(index));
  return before.length % DASHES.length;
}

/** What the values span, with a little room; where all are zero, not a hundred. */
function rangeOf(_: uPlot, least: number | null, most: number | null): uPlot.Range.MinMax {
  if (least === null || most === null || (least === 0 && most === 0)) return [0, 1];
  return uPlot.rangeNum(least, most, 0.1, true);
}

/** On a logarithmic axis only powers of ten have a line of their own. */
const wholePowers: uPlot.Axis.Filter = (_, splits) =>
  splits.map((split) => (split > 0 && Number.isInteger(Math.round(Math.log10(split) * 1e6) / 1e6) ? split : null));
/** The value at a place; where the line has none, the newest before, as it is drawn. */
function valueAt(values: Line["values"], index: number): number | null {
  for (let at = index; at >= 0; at -= 1) {
    const value = values[at];
    if (value !== undefined) return value;
  }
  return null;
}

function colourOf(tokens: Tokens, colour: number): string {
  return tokens.work[hueOf(colour)] ?? tokens.others;
}
