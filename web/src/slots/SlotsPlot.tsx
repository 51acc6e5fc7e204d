import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { axis, Plot, type PlotOptions, timeAxis } from "../components/Plot";
import { count, duration, measure, time } from "../format/format";
import { text } from "../text";
import type { Tokens } from "../theme/tokens";
import { indexAt, type Layer, type SlotChart, stackOf } from "./layers";
import { Marks } from "./Marks";
import type { SlotMark } from "./marks";
import { fillOf } from "./patterns";
import classes from "./Slots.module.css";
import { Tooltip } from "./Tooltip";
import { boundsOf, panned, type TimeWindow, zoomed } from "./window";

const words = text.slots;
const PADDING_RIGHT = 12;

interface Props {
  chart: SlotChart;
  layers: readonly Layer[];
  hidden: ReadonlySet<string>;
  marks: readonly SlotMark[];
  window: TimeWindow;
  onWindow: (window: TimeWindow) => void;
  /** Seconds since the epoch, by the server's clock. */
  now: number;
  height: number;
  /** Where the cursor is, for the legend; null: it is nowhere. */
  onCursor: (at: number | null) => void;
}

/** The plot itself: layers, capacity, marks, and what is under the cursor, which pointer and keys both move. */
export function SlotsPlot({ chart, layers, hidden, marks, window, onWindow, now, height, onCursor }: Props) {
  const plot = useRef<uPlot | null>(null);
  const [box, setBox] = useState<{ left: number; width: number; from: number; until: number } | null>(null);
  const [cursor, setCursor] = useState<{ at: number; left: number; pinned: boolean } | null>(null);
  const [from, until] = boundsOf(window, now);
  const end = window.live ? Math.max(now, chart.until) : chart.until;
  const stack = useMemo(() => stackOf(chart, layers, hidden, end), [chart, layers, hidden, end]);
  const data = useMemo(() => [stack.x, ...[...stack.sums].reverse(), stack.capacity] as uPlot.AlignedData, [stack]);
  const most = Math.max(1, ...chart.capacity, ...(stack.sums.at(-1) ?? []));
  const current = useRef({ stack, chart, from, until, most, window, now, onWindow, pinned: false });
  current.current = { stack, chart, from, until, most, window, now, onWindow, pinned: cursor?.pinned ?? false };

  const options = (tokens: Tokens): PlotOptions => ({
    padding: [8, PADDING_RIGHT, 0, 0],
    scales: {
      x: { time: true, range: () => [current.current.from, current.current.until] },
      y: { range: () => [0, current.current.most * 1.04] },
    },
    axes: [
      timeAxis(tokens, { grid: { show: false } }),
      axis(tokens, { size: 44, incrs: INCREMENTS, values: (_, ticks) => ticks.map(count) }),
    ],
    series: [
      {},
      ...[...stack.layers].reverse().map(
        (layer): uPlot.Series => ({
          label: layer.key,
          stroke: tokens.surface,
          width: 1,
          fill: (self) => fillOf(self.ctx, tokens, layer.colour),
          paths: stepped,
          points: { show: false },
        }),
      ),
      { label: "capacity", stroke: tokens.dim, width: 1.5, dash: [4, 4], paths: stepped, points: { show: false } },
    ],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setCursor: [
        (self) => {
          if (current.current.pinned) return;
          const left = self.cursor.left ?? -1;
          if (left < 0) setCursor(null);
          else setCursor({ at: self.posToVal(left, "x"), left, pinned: false });
        },
      ],
      setSelect: [
        (self) => {
          const { left, width } = self.select;
          if (width < 6) return;
          const [start, stop] = [self.posToVal(left, "x"), self.posToVal(left + width, "x")];
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          current.current.onWindow({ live: false, from: start, until: stop });
        },
      ],
      drawClear: [(self) => drawGaps(self, current.current.chart, tokens)],
      draw: [
        (self) => {
          const { left, width } = self.bbox;
          const [start, stop] = [self.scales.x?.min ?? 0, self.scales.x?.max ?? 1];
          const next = { left: left / uPlot.pxRatio, width: width / uPlot.pxRatio, from: start, until: stop };
          setBox((before) => (before !== null && sameBox(before, next) ? before : next));
        },
      ],
    },
  });

  const redraw = useRef({ from, until });
  useEffect(() => {
    if (redraw.current.from === from && redraw.current.until === until) return;
    redraw.current = { from, until };
    plot.current?.setScale("x", { min: from, max: until });
  }, [from, until]);
  const at = cursor?.at ?? null;
  useEffect(() => onCursor(at), [at, onCursor]);

  const moveTo = (index: number) => {
    const self = plot.current;
    const place = Math.min(chart.times.length - 1, Math.max(0, index));
    const start = chart.times[place];
    if (self === null || start === undefined) return;
    const shown = Math.min(Math.max(start, from), until);
    setCursor({ at: shown, left: self.valToPos(shown, "x"), pinned: cursor?.pinned ?? false });
    const left = self.valToPos(shown, "x");
    self.setCursor({ left, top: 10 }, false);
  };
  const press = (event: KeyboardEvent) => {
    const place = indexAt(chart.times, at ?? until);
    const step = event.shiftKey ? 10 : 1;
    const acts = new Map<string, () => void>([
      ["ArrowLeft", () => moveTo(place - step)],
      ["ArrowRight", () => moveTo(place + step)],
      ["Home", () => moveTo(indexAt(chart.times, from))],
      ["End", () => moveTo(chart.times.length - 1)],
      ["+", () => onWindow(zoomed(window, 0.5, now))],
      ["=", () => onWindow(zoomed(window, 0.5, now))],
      ["-", () => onWindow(zoomed(window, 2, now))],
      ["[", () => onWindow(panned(window, -0.5, now))],
      ["]", () => onWindow(panned(window, 0.5, now))],
      ["0", () => onWindow({ live: true, length: until - from })],
      ["m", () => moveTo(nextMark(marks, chart, at ?? from))],
      ["Enter", () => setCursor((shown) => (shown === null ? null : { ...shown, pinned: !shown.pinned }))],
      ["Escape", () => setCursor(null)],
    ]);
    const act = acts.get(event.key);
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const onPlot = useCallback((made: uPlot | null) => {
    plot.current = made;
  }, []);
  const shape = `${stack.layers.map((layer) => `${layer.key}:${layer.colour}`).join("|")}`;
  const shownAt = Math.min(Math.max(at ?? until, from), until);
  return (
    <div className={classes.place}>
      <div
        className={classes.plot}
        role="slider"
        tabIndex={0}
        aria-label={words.plot(words.keys)}
        aria-valuemin={Math.round(from)}
        aria-valuemax={Math.round(until)}
        aria-valuenow={Math.round(shownAt)}
        aria-valuetext={sentence(chart, stack.layers, shownAt)}
        onKeyDown={press}
        onClick={() => setCursor((shown) => (shown === null ? null : { ...shown, pinned: !shown.pinned }))}
        onDoubleClick={() => onWindow({ live: true, length: until - from })}
      >
        <Plot data={data} options={options} shape={shape} height={height} onPlot={onPlot} />
      </div>
      {cursor !== null && box !== null && (
        <Tooltip
          chart={chart}
          layers={stack.layers}
          at={cursor.at}
          left={box.left + cursor.left}
          width={box.left + box.width}
          pinned={cursor.pinned}
        />
      )}
      {box !== null && <Marks marks={marks} box={box} />}
    </div>
  );
}

const INCREMENTS = [1, 2, 4, 8, 10, 20, 40, 50, 80, 100, 200, 400, 500, 1000, 2000, 5000, 10_000];
const stepped = uPlot.paths.stepped?.({ align: 1, extend: true });

function sameBox(one: object, other: object): boolean {
  return Object.values(one).join() === Object.values(other).join();
}

/** Hatch the time in which no server kept record. */
function drawGaps(self: uPlot, chart: SlotChart, tokens: Tokens): void {
  const { ctx, bbox } = self;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = tokens.border;
  ctx.lineWidth = uPlot.pxRatio;
  for (const gap of chart.gaps) {
    const left = self.valToPos(gap.from, "x", true);
    const right = self.valToPos(gap.until, "x", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, Math.max(1, right - left), bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (let x = left - bbox.height; x < right; x += 8 * uPlot.pxRatio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
  ctx.restore();
}

/** The place of the first mark after an instant, or of the first of all. */
function nextMark(marks: readonly SlotMark[], chart: SlotChart, at: number): number {
  const sorted = [...marks].sort((one, other) => one.at - other.at);
  const next = sorted.find((mark) => indexAt(chart.times, mark.at) > indexAt(chart.times, at)) ?? sorted[0];
  return next === undefined ? indexAt(chart.times, at) : indexAt(chart.times, next.at);
}

/** What the chart shows at an instant, in words. */
function sentence(chart: SlotChart, layers: readonly Layer[], at: number): string {
  const index = indexAt(chart.times, at);
  const held = layers.filter((layer) => (layer.values[index] ?? 0) > 0);
  const used = held.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0);
  const shown = held.map((layer) => `${layer.id || layer.name} ${measure(layer.values[index])}`).join(", ");
  const all = words.of(measure(used), count(chart.capacity[index]));
  return `${time(at)}, ${all}${shown === "" ? "" : `: ${shown}`}${chart.exact ? "" : `, ${words.mean(duration(chart.width_s))}`}`;
}
