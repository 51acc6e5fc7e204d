import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useLayoutEffect, useRef } from "react";
import { type Scheme, TOKENS, type Tokens } from "../theme/tokens";
import classes from "./Plot.module.css";

export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

interface Props {
  data: uPlot.AlignedData;
  /** Makes the options anew when `shape` or the colours change; data alone never does. */
  options: (tokens: Tokens, scheme: Scheme) => PlotOptions;
  /** What the options depend on. */
  shape: string;
  height: number;
  /** The plot itself, for who draws over it. */
  onPlot?: (plot: uPlot | null) => void;
}

/** A uPlot that React owns: made once, given new data, as wide as its place, gone with it. */
export function Plot({ data, options, shape, height, onPlot }: Props) {
  const scheme = useComputedColorScheme("light");
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const current = useRef({ data, options, onPlot });
  current.current = { data, options, onPlot };
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for what the options depend on
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const { data: first, options: make, onPlot: tell } = current.current;
    const made = new uPlot(
      { ...make(TOKENS[scheme], scheme), width: Math.max(100, element.clientWidth), height },
      first,
      element,
    );
    plot.current = made;
    tell?.(made);
    const observer = new ResizeObserver(() => {
      const width = Math.max(100, element.clientWidth);
      if (width !== made.width) made.setSize({ width, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      tell?.(null);
      plot.current = null;
      made.destroy();
    };
  }, [shape, scheme, height]);
  const shown = useRef(data);
  useEffect(() => {
    if (shown.current === data) return;
    shown.current = data;
    plot.current?.setData(data);
  }, [data]);
  return <div ref={place} className={classes.plot} style={{ minHeight: height }} />;
}

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const tenths = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 1,
});
const TIME_STEPS = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760].map((hours) => hours * 3600),
];
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Times below a chart: of day, to the second or its tenths where they are that near; a new day says which it is. */
export function timeAxis(tokens: Tokens, more: uPlot.Axis = {}): uPlot.Axis {
  return axis(tokens, {
    space: 80,
    size: (_, labels) => (labels?.some((label) => label.includes("\n")) ? 46 : 30),
    incrs: TIME_STEPS,
    values: (plot, ticks, _axis, _space, step) =>
      ticks.map((tick, index) => {
        const at = new Date(tick * 1000);
        if (isCut(plot, tick, step)) return "";
        if (step >= 86_400) return days.format(at);
        const shown = (step < 1 ? tenths : step < 60 ? seconds : hours).format(at);
        const before = ticks[index - 1];
        const isNewDay = before !== undefined && new Date(before * 1000).getDate() !== at.getDate();
        return isNewDay ? `${days.format(at)}\n${shown}` : shown;
      }),
    ...more,
  });
}

const DIGIT = 7;

/** Whether the time at a tick would reach over the right edge of its chart. */
function isCut(plot: uPlot, tick: number, step: number): boolean {
  if (!(plot.bbox?.width > 0)) return false;
  const length = step < 1 ? 10 : step < 60 ? 8 : 6;
  return plot.bbox.left / uPlot.pxRatio + plot.valToPos(tick, "x") + (length * DIGIT) / 2 > plot.width;
}

/** The width of an axis of values: what its longest label takes, and the gap to the chart. */
export function sizeOfAxis(_: uPlot, labels: string[] | null): number {
  return Math.max(36, 16 + DIGIT * Math.max(0, ...(labels ?? []).map((label) => label?.length ?? 0)));
}

/** Axes as all charts of the console have them. */
export function axis(tokens: Tokens, more: uPlot.Axis = {}): uPlot.Axis {
  return {
    stroke: tokens.dim,
    font: '12px "Inter Variable", system-ui, sans-serif',
    grid: { stroke: tokens.border, width: 1 },
    ticks: { stroke: tokens.border, width: 1, size: 4 },
    ...more,
  };
}
