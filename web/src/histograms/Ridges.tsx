import { useElementSize } from "@mantine/hooks";
import { type KeyboardEvent, type PointerEvent, useMemo, useState } from "react";
import { count, counted, measure, percent } from "../format/format";
import { text } from "../text";
import classes from "./Histograms.module.css";
import {
  binAt,
  extentOf,
  focusOf,
  type Histogram,
  numBinsOf,
  numValues,
  type Ridge,
  ridgesOf,
  ticksOf,
  titleOf,
} from "./ridges";

const words = text.histograms;
const MOST_RIDGES = 32;
const HEIGHT = 340;
const BOTTOM = 28;
const LEFT = 8;
const RIGHT = 56;
const TICK_GAP = 84;

interface Place {
  /** Of a ridge. */
  row: number;
  /** Of the bins that all ridges share. */
  bin: number;
}

/** One ridge for each step, the newest in front; what is under the pointer stands above. */
export function Ridges({ name, histograms }: { name: string; histograms: readonly Histogram[] }) {
  const { ref, width } = useElementSize<HTMLElement>();
  const [place, setPlace] = useState<Place | null>(null);
  const { extent, numBins, ridges, isTrimmed } = useMemo(() => {
    const extent = focusOf(histograms);
    const numBins = numBinsOf(histograms);
    const all = extentOf(histograms);
    const isTrimmed = all[0] < extent[0] || extent[1] < all[1];
    return { extent, numBins, isTrimmed, ridges: ridgesOf(histograms, extent, numBins, MOST_RIDGES) };
  }, [histograms]);
  const last = ridges.length - 1;
  const top = ridges.length > 1 ? 120 : 24;
  const inner = Math.max(40, width - LEFT - RIGHT);
  const binWidth = inner / numBins;
  const amplitude = ridges.length > 1 ? 112 : HEIGHT - BOTTOM - top - 8;
  const baseOf = (row: number) => (last < 1 ? HEIGHT - BOTTOM : top + (row * (HEIGHT - BOTTOM - top)) / last);
  const xOf = (value: number) => LEFT + ((value - extent[0]) / (extent[1] - extent[0])) * inner;
  const shown = place ?? { row: last, bin: highest(ridges[last]) };
  const row = Math.min(last, shown.row);

  const point = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const below = ridges.findIndex((_, at) => baseOf(at) >= y);
    setPlace({ row: below === -1 ? last : below, bin: within(Math.floor((x - LEFT) / binWidth), numBins) });
  };
  const move = (event: KeyboardEvent) => {
    const [rows, bins] = MOVES[event.key] ?? [0, 0];
    if (rows === 0 && bins === 0) return;
    event.preventDefault();
    setPlace({ row: within(row + rows, ridges.length), bin: within(shown.bin + bins, numBins) });
  };

  const ridge = ridges[row];
  if (ridge === undefined) return null;
  const middle = extent[0] + ((shown.bin + 0.5) * (extent[1] - extent[0])) / numBins;
  const steps = counted(ridges.length, "step");
  return (
    <>
      <Reading histogram={ridge.histogram} value={middle} />
      <section
        ref={ref}
        className={classes.stage}
        style={{ height: HEIGHT }}
        tabIndex={0}
        aria-label={words.picture(titleOf(name), steps)}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setPlace(null)}
        onKeyDown={move}
        onBlur={() => setPlace(null)}
      >
        <svg aria-hidden>
          {ticksOf(extent, Math.max(2, inner / TICK_GAP)).map((tick) => (
            <g key={tick}>
              <line className={classes.grid} x1={xOf(tick)} x2={xOf(tick)} y1={top - 8} y2={HEIGHT - BOTTOM} />
              <text className={classes.tick} x={xOf(tick)} y={HEIGHT - 8} textAnchor="middle">
                {measure(tick)}
              </text>
            </g>
          ))}
          {ridges.map((one, at) => (
            <path
              key={one.histogram.step}
              className={classes.ridge}
              data-shown={at === row && place !== null ? true : undefined}
              style={{ fill: colourOf(last < 1 ? 1 : at / last) }}
              d={pathOf(one.heights, baseOf(at), binWidth, amplitude)}
            />
          ))}
          {place !== null && (
            <circle
              className={classes.dot}
              cx={LEFT + (shown.bin + 0.5) * binWidth}
              cy={baseOf(row) - (ridge.heights[shown.bin] ?? 0) * amplitude}
              r={4}
            />
          )}
          {labelled(ridges.length).map((at) => (
            <text key={at} className={classes.tick} x={LEFT + inner + 8} y={baseOf(at) + 4}>
              {count(ridges[at]?.histogram.step)}
            </text>
          ))}
          <text className={classes.tick} x={LEFT + inner + 8} y={top - 12}>
            {words.step}
          </text>
        </svg>
      </section>
      {isTrimmed && <p className={classes.note}>{words.trimmed}</p>}
    </>
  );
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

function within(number: number, length: number): number {
  return Math.min(length - 1, Math.max(0, number));
}

function highest(ridge: Ridge | undefined): number {
  return ridge === undefined ? 0 : ridge.heights.indexOf(Math.max(...ridge.heights));
}

/** The newest ridge has the colour whole, older ones fade. */
function colourOf(share: number): string {
  return `color-mix(in srgb, var(--work-0) ${Math.round(30 + 70 * share)}%, var(--surface))`;
}

/** The rows whose steps are written: about six of them, with both ends. */
function labelled(length: number): number[] {
  const step = Math.max(1, Math.ceil((length - 1) / 5));
  const rows = Array.from({ length: Math.ceil(length / step) }, (_, at) => at * step);
  const last = length - 1;
  return [...rows.filter((row) => row === 0 || last - row >= step / 2), ...(last > 0 ? [last] : [])].filter(
    (row, at, all) => all.indexOf(row) === at,
  );
}

/** From the base line over the middles of the bins and back. */
function pathOf(heights: readonly number[], base: number, binWidth: number, amplitude: number): string {
  const points = heights.map(
    (height, bin) => `${(LEFT + (bin + 0.5) * binWidth).toFixed(1)},${(base - height * amplitude).toFixed(1)}`,
  );
  const right = LEFT + heights.length * binWidth;
  return `M${LEFT},${base.toFixed(1)} L${points.join(" L")} L${right.toFixed(1)},${base.toFixed(1)} Z`;
}

/** The step, the bin and its count that are looked at, and what is no number at that step. */
function Reading({ histogram, value }: { histogram: Histogram; value: number }) {
  const bin = binAt(histogram, value);
  const all = numValues(histogram);
  return (
    <p className={classes.reading} role="status">
      <b>{words.at(count(histogram.step))}</b>
      {bin === null ? (
        <span>
          {measure(value)}: {words.noValues}
        </span>
      ) : (
        <>
          <span>{words.bin(measure(bin.from), measure(bin.until))}</span>
          <span>{words.values(count(bin.count), percent(bin.count / Math.max(1, all), 1))}</span>
        </>
      )}
      {histogram.num_nan > 0 && <b className={classes.bad}>{words.nan(count(histogram.num_nan))}</b>}
      {histogram.num_infinite > 0 && <b className={classes.bad}>{words.infinite(count(histogram.num_infinite))}</b>}
    </p>
  );
}
