import { Button, Select, TextInput, useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useAddress } from "../../components/useAddress";
import { measure } from "../../format/format";
import { text } from "../../text";
import { TOKENS } from "../../theme/tokens";
import { type Axis, axesOf, type Brush, brushOf, brushText, isKept, placeOf, valueAt, valueOn } from "./parallel";
import classes from "./Searches.module.css";
import type { SearchView, TrialRow } from "./shown";

const words = text.searches.plots;
const HEIGHT = 320;
const TOP = 40;
const BOTTOM = 32;
const SIDE = 48;
const LEAST_GAP = 96;

interface Props {
  search: SearchView;
  /** Those that are shown, the best first. */
  trials: readonly TrialRow[];
}

/** A line for each trial through its values: the better the bluer. What is kept of an axis stands in the address. */
export function ParallelCoordinates({ search, trials }: Props) {
  const address = useAddress();
  const { ref, width } = useElementSize<HTMLDivElement>();
  const objective = search.settings.objectives[0];
  const axes = useMemo(
    () =>
      axesOf(
        search.settings.parameters,
        search.settings.objectives.map(({ metric }) => metric),
        trials,
      ),
    [search.settings.parameters, search.settings.objectives, trials],
  );
  const written = axes.map((axis) => address.get(`keep.${axis.id}`) ?? "").join("\n");
  const brushes = useMemo(() => {
    const ends = written.split("\n").map((one) => brushOf(one === "" ? null : one));
    return Object.fromEntries(axes.flatMap((axis, index) => (ends[index] ? [[axis.id, ends[index]]] : []))) as Record<
      string,
      Brush
    >;
  }, [axes, written]);
  const set = (axis: Axis, brush: Brush | null) =>
    address.set({ [`keep.${axis.id}`]: brush === null ? null : brushText(brush) });
  const full = Math.max(width, 2 * SIDE + LEAST_GAP * (axes.length - 1));
  const xOf = (index: number) => (axes.length < 2 ? full / 2 : SIDE + (index * (full - 2 * SIDE)) / (axes.length - 1));
  const kept = useMemo(() => trials.filter((trial) => isKept(trial, axes, brushes)), [trials, axes, brushes]);
  return (
    <>
      <p className="dim" style={{ margin: "0 0 8px" }}>
        {words.parallelHint} {words.shown(kept.length, trials.length)}.
      </p>
      <div ref={ref}>
        <section className={classes.parallel} tabIndex={0} aria-label={words.parallel}>
          <div className={classes.stage} style={{ width: full, height: HEIGHT }}>
            <Lines
              trials={trials}
              kept={kept}
              axes={axes}
              xOf={xOf}
              width={full}
              maximize={objective?.direction === "maximize"}
            />
            <svg role="img" aria-label={words.picture(search.name)}>
              {axes.map((axis, index) => (
                <AxisLine
                  key={axis.id}
                  axis={axis}
                  x={xOf(index)}
                  gap={axes.length > 1 ? xOf(1) - xOf(0) : full}
                  brush={brushes[axis.id] ?? null}
                  onBrush={(brush) => set(axis, brush)}
                />
              ))}
            </svg>
          </div>
        </section>
      </div>
      <div className={classes.ends}>
        {axes.map((axis) => (
          <Ends key={axis.id} axis={axis} brush={brushes[axis.id] ?? null} onBrush={(brush) => set(axis, brush)} />
        ))}
      </div>
      {Object.keys(brushes).length > 0 && (
        <Button
          mt="sm"
          variant="default"
          onClick={() => address.set(Object.fromEntries(axes.map((axis) => [`keep.${axis.id}`, null])))}
        >
          {words.clear}
        </Button>
      )}
    </>
  );
}

function yOf(place: number): number {
  return HEIGHT - BOTTOM - place * (HEIGHT - BOTTOM - TOP);
}

interface LinesProps {
  trials: readonly TrialRow[];
  kept: readonly TrialRow[];
  axes: readonly Axis[];
  xOf: (index: number) => number;
  width: number;
  maximize: boolean;
}

function Lines({ trials, kept, axes, xOf, width, maximize }: LinesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(HEIGHT * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const tokens = TOKENS[scheme];
    const result = axes.find((axis) => axis.objective === 0);
    const keptSet = new Set(kept);
    const draw = (trial: TrialRow) => {
      context.beginPath();
      let open = false;
      axes.forEach((axis, index) => {
        const place = placeOf(axis, valueOn(axis, trial));
        if (place === null) {
          open = false;
          return;
        }
        if (open) context.lineTo(xOf(index), yOf(place));
        else context.moveTo(xOf(index), yOf(place));
        open = true;
      });
      context.stroke();
    };
    context.lineWidth = 1;
    context.strokeStyle = tokens.free;
    for (const trial of trials) if (!keptSet.has(trial)) draw(trial);
    context.lineWidth = 1.5;
    for (const trial of [...kept].reverse()) {
      const place = result === undefined ? null : placeOf(result, valueOn(result, trial));
      const goodness = place === null ? 0 : maximize ? place : 1 - place;
      context.strokeStyle = blend(tokens.others, tokens.accent, goodness);
      context.globalAlpha = 0.45 + 0.55 * goodness;
      draw(trial);
    }
    context.globalAlpha = 1;
  }, [trials, kept, axes, xOf, width, maximize, scheme]);
  return <canvas ref={canvas} aria-hidden />;
}

function blend(from: string, to: string, share: number): string {
  const part = (colour: string, at: number) => Number.parseInt(colour.slice(at, at + 2), 16);
  return `rgb(${[1, 3, 5].map((at) => Math.round(part(from, at) * (1 - share) + part(to, at) * share)).join(" ")})`;
}

interface AxisProps {
  axis: Axis;
  x: number;
  gap: number;
  brush: Brush | null;
  onBrush: (brush: Brush | null) => void;
}

function AxisLine({ axis, x, gap, brush, onBrush }: AxisProps) {
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const placeAt = (event: PointerEvent<SVGRectElement>) => {
    const box = event.currentTarget.ownerSVGElement?.getBoundingClientRect();
    const y = event.clientY - (box?.top ?? 0);
    return Math.min(1, Math.max(0, (HEIGHT - BOTTOM - y) / (HEIGHT - BOTTOM - TOP)));
  };
  const end = () => {
    if (drag === null) return;
    const [low, high] = [Math.min(...drag), Math.max(...drag)];
    setDrag(null);
    if (high - low < 0.01) onBrush(null);
    else onBrush(roundedBrush(axis, low, high));
  };
  const places = drag ?? placesOf(axis, brush);
  const label = axis.label.length > 16 ? `${axis.label.slice(0, 15)}…` : axis.label;
  return (
    <g>
      <text x={x} y={16} textAnchor="middle" fontWeight={600}>
        {label}
        <title>{axis.label}</title>
      </text>
      <line className={classes.axis} x1={x} x2={x} y1={yOf(0)} y2={yOf(1)} />
      {ticksOf(axis).map(({ place, label: written }) => (
        <text
          key={`${place}`}
          className={classes.tick}
          x={x}
          y={tickY(place, axis)}
          textAnchor={axis.categories === null ? "middle" : "start"}
          dx={axis.categories === null ? 0 : 6}
        >
          {written}
        </text>
      ))}
      {places && (
        <rect
          className={classes.brush}
          x={x - 7}
          width={14}
          y={yOf(Math.max(...places))}
          height={Math.max(2, yOf(Math.min(...places)) - yOf(Math.max(...places)))}
        />
      )}
      <rect
        className={classes.hit}
        x={x - Math.min(24, gap / 2)}
        width={Math.min(48, gap)}
        y={TOP - 8}
        height={HEIGHT - BOTTOM - TOP + 16}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const place = placeAt(event);
          setDrag([place, place]);
        }}
        onPointerMove={(event) => drag !== null && setDrag([drag[0], placeAt(event)])}
        onPointerUp={end}
        onPointerCancel={() => setDrag(null)}
      />
    </g>
  );
}

function tickY(place: number, axis: Axis): number {
  if (axis.categories !== null) return yOf(place) + 4;
  return place === 0 ? yOf(0) + 16 : yOf(1) - 6;
}

function ticksOf(axis: Axis): { place: number; label: string }[] {
  if (axis.categories !== null) {
    if (axis.categories.length > 12) return [];
    return axis.categories.map((category) => ({
      place: placeOf(axis, category) ?? indexPlace(axis, category),
      label: category.length > 12 ? `${category.slice(0, 11)}…` : category,
    }));
  }
  return [
    { place: 0, label: measure(axis.low) },
    { place: 1, label: measure(axis.high) },
  ];
}

function indexPlace(axis: Axis, category: string): number {
  const index = axis.categories?.indexOf(category) ?? 0;
  const length = axis.categories?.length ?? 1;
  return length === 1 ? 0.5 : index / (length - 1);
}

function placesOf(axis: Axis, brush: Brush | null): readonly [number, number] | null {
  if (brush === null) return null;
  const place = (value: number | null, none: number) => {
    if (value === null) return none;
    const length = axis.categories?.length ?? 0;
    const found = axis.categories === null ? placeOf(axis, value) : length === 1 ? 0.5 : value / (length - 1);
    return Math.min(1, Math.max(0, found ?? none));
  };
  return [place(brush[0], 0), place(brush[1], 1)];
}

function roundedBrush(axis: Axis, low: number, high: number): Brush {
  const ends = [valueAt(axis, low), valueAt(axis, high)] as const;
  if (axis.categories !== null) return [Math.ceil(ends[0]), Math.floor(ends[1])];
  return [Number(ends[0].toPrecision(3)), Number(ends[1].toPrecision(3))];
}

interface EndsProps {
  axis: Axis;
  brush: Brush | null;
  onBrush: (brush: Brush | null) => void;
}

/** The ends of what is kept of an axis, for the keyboard. */
function Ends({ axis, brush, onBrush }: EndsProps) {
  const change = (end: 0 | 1, value: number | null) => {
    const next: [number | null, number | null] = [brush?.[0] ?? null, brush?.[1] ?? null];
    next[end] = value;
    onBrush(next[0] === null && next[1] === null ? null : next);
  };
  return (
    <fieldset>
      <legend className="cut" title={axis.label}>
        {axis.label}
      </legend>
      <div className={classes.pair}>
        {([0, 1] as const).map((end) => (
          <End key={end} axis={axis} end={end} value={brush?.[end] ?? null} onChange={(value) => change(end, value)} />
        ))}
      </div>
    </fieldset>
  );
}

interface EndProps {
  axis: Axis;
  end: 0 | 1;
  value: number | null;
  onChange: (value: number | null) => void;
}

function End({ axis, end, value, onChange }: EndProps) {
  const label = end === 0 ? words.low(axis.label) : words.high(axis.label);
  const [typed, setTyped] = useState<string | null>(null);
  if (axis.categories !== null) {
    return (
      <Select
        aria-label={label}
        clearable
        placeholder={axis.categories.at(end === 0 ? 0 : -1) ?? ""}
        data={axis.categories.map((category, index) => ({ value: String(index), label: category }))}
        value={value === null ? null : String(value)}
        onChange={(chosen) => onChange(chosen === null ? null : Number(chosen))}
      />
    );
  }
  const shown = typed ?? (value === null ? "" : String(value));
  const isWrong = shown.trim() !== "" && !Number.isFinite(Number(shown));
  const commit = () => {
    if (typed === null || isWrong) return;
    onChange(typed.trim() === "" ? null : Number(typed));
    setTyped(null);
  };
  return (
    <TextInput
      aria-label={label}
      inputMode="decimal"
      placeholder={measure(end === 0 ? axis.low : axis.high)}
      value={shown}
      error={isWrong}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === "Enter" && commit()}
    />
  );
}
