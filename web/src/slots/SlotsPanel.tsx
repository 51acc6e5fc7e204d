import { ActionIcon, Button, SegmentedControl, Select, Tooltip } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import {
  IconChevronLeft,
  IconChevronRight,
  IconMinus,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlus,
} from "@tabler/icons-react";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { outdate } from "../api/cache";
import { useEvents } from "../api/live";
import { keyOf, useGet } from "../api/queries";
import { Answer } from "../components/Notice";
import { Panel } from "../components/Panel";
import { useNow } from "../components/Time";
import { useAddress } from "../components/useAddress";
import { duration, time } from "../format/format";
import { text } from "../text";
import { Legend } from "./Legend";
import { layersOf, type SlotChart } from "./layers";
import { MarksTable } from "./MarksTable";
import type { SlotMark } from "./marks";
import classes from "./Slots.module.css";
import { SlotsPlot } from "./SlotsPlot";
import {
  addressOfWindow,
  boundsOf,
  DEFAULT_LENGTH,
  PRESETS,
  panned,
  paused,
  refreshMs,
  type TimeWindow,
  usualLength,
  windowOf,
  zoomed,
} from "./window";

const words = text.slots;
const KINDS = ["job", "endpoint", "search", "queue", "group", "user"] as const;
type By = (typeof KINDS)[number];
const MARKS = 300;
const BUCKETS = 1200;

/** Slots over time by who has them: live, or any part of what was recorded; its settings stand in the address. */
export function SlotsPanel() {
  const address = useAddress();
  const by = KINDS.find((kind) => kind === address.get("by")) ?? "job";
  const [from, until] = [address.get("from"), address.get("until")];
  const [usual, setUsual] = useState(DEFAULT_LENGTH);
  const window = useMemo(() => windowOf(from, until, usual), [from, until, usual]);
  const asTable = address.get("show") === "table";
  const setWindow = useCallback((next: TimeWindow) => address.set(addressOfWindow(next)), [address.set]);
  const { chart, marks, now } = useSlots(by, window);
  if (usual === DEFAULT_LENGTH && chart.data !== undefined) {
    const length = usualLength(chart.data);
    if (length !== usual) setUsual(length);
  }
  const setBy = (kind: string | null) => address.set({ by: kind === "job" ? null : kind });
  return (
    <Panel
      title={words.title}
      aside={
        <Controls
          window={window}
          onWindow={setWindow}
          now={now}
          asTable={asTable}
          onTable={(show) => address.set({ show: show ? "table" : null })}
        >
          <Select
            aria-label={words.by}
            w={112}
            data={KINDS.map((kind) => ({ value: kind, label: words.kinds[kind] }))}
            value={by}
            allowDeselect={false}
            onChange={setBy}
          />
        </Controls>
      }
    >
      <Answer query={chart} rows={1} height={320}>
        {(shown) =>
          asTable ? (
            <MarksTable marks={marks.data?.marks ?? []} more={marks.data?.num_more ?? 0} caption={captionOf(shown)} />
          ) : (
            <Chart
              key={by}
              chart={shown}
              marks={marks.data?.marks ?? []}
              window={window}
              onWindow={setWindow}
              now={now}
            />
          )
        }
      </Answer>
    </Panel>
  );
}

function captionOf(chart: SlotChart): string {
  return `${time(chart.from)} – ${time(chart.until)} (${duration(chart.until - chart.from)})`;
}

/** The chart of a window, asked for again when slots change, and the present by the server's clock. */
function useSlots(by: By, window: TimeWindow) {
  const query = window.live ? { from: -window.length } : { from: window.from, until: window.until };
  const asked = { params: { query: { by, ...query, max_buckets: BUCKETS } } };
  const askedMarks = { params: { query: { ...query, limit: MARKS } } };
  const chart = useGet("/v1/slots/chart", asked, { keepPrevious: true });
  const marks = useGet("/v1/slots/marks", askedMarks, { keepPrevious: true });
  const skew = useSkew(chart.data?.now, chart.dataUpdatedAt);
  const now = useNow() + skew;
  const due = useRef<number | null>(null);
  const keys = useRef<readonly (readonly unknown[])[]>([]);
  keys.current = window.live ? [keyOf("/v1/slots/chart", asked), keyOf("/v1/slots/marks", askedMarks)] : [];
  const delay = useRef(0);
  delay.current = window.live ? refreshMs(window.length, BUCKETS) : 0;
  const refresh = useCallback(() => {
    due.current ??= globalThis.setTimeout(() => {
      due.current = null;
      for (const queryKey of keys.current) outdate({ queryKey });
    }, delay.current) as unknown as number;
  }, []);
  useEvents((events) => {
    if (events.some((event) => MATTERS.has(event.kind))) refresh();
  });
  useEffect(() => () => globalThis.clearTimeout(due.current ?? undefined), []);
  return { chart, marks, now };
}

const MATTERS: ReadonlySet<string> = new Set([
  "slots.changed",
  "decision",
  "job.state",
  "job.changed",
  "queue.changed",
  "share.changed",
  "task.lost",
  "server.started",
]);

/** By how many seconds the server's clock is ahead of this one. */
function useSkew(serverNow: number | undefined, at: number): number {
  const skew = useRef(0);
  if (serverNow !== undefined && at > 0) {
    const ahead = serverNow - at / 1000;
    skew.current = Math.abs(ahead) > 1 ? ahead : 0;
  }
  return skew.current;
}

interface ChartProps {
  chart: SlotChart;
  marks: readonly SlotMark[];
  window: TimeWindow;
  onWindow: (window: TimeWindow) => void;
  now: number;
}

function Chart({ chart, marks, window, onWindow, now }: ChartProps) {
  const narrow = useMediaQuery("(max-width: 767px)", false, { getInitialValueInEffect: false });
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState<number | null>(null);
  const layers = useMemo(() => layersOf(chart, words.rest, words.others), [chart]);
  const [, until] = boundsOf(window, now);
  return (
    <>
      <SlotsPlot
        chart={chart}
        layers={layers}
        hidden={hidden}
        marks={marks}
        window={window}
        onWindow={onWindow}
        now={now}
        height={narrow ? 200 : 280}
        onCursor={setAt}
      />
      <Legend chart={chart} layers={layers} hidden={hidden} onHidden={setHidden} at={at ?? until} />
    </>
  );
}

interface ControlsProps {
  window: TimeWindow;
  onWindow: (window: TimeWindow) => void;
  now: number;
  asTable: boolean;
  onTable: (asTable: boolean) => void;
  children: ReactNode;
}

function Controls({ window, onWindow, now, asTable, onTable, children }: ControlsProps) {
  const preset = window.live ? String(window.length) : "";
  return (
    <div className={classes.controls}>
      {children}
      <SegmentedControl
        aria-label={words.range}
        data={PRESETS.map(({ seconds, name }) => ({ value: String(seconds), label: name }))}
        value={PRESETS.some(({ seconds }) => String(seconds) === preset) ? preset : ""}
        onChange={(value) => onWindow({ live: true, length: Number(value) })}
      />
      <ActionIcon.Group>
        <Act label={words.back} act={() => onWindow(panned(window, -0.5, now))} icon={<IconChevronLeft size={16} />} />
        <Act label={words.forth} act={() => onWindow(panned(window, 0.5, now))} icon={<IconChevronRight size={16} />} />
        <Act label={words.zoomOut} act={() => onWindow(zoomed(window, 2, now))} icon={<IconMinus size={16} />} />
        <Act label={words.zoomIn} act={() => onWindow(zoomed(window, 0.5, now))} icon={<IconPlus size={16} />} />
      </ActionIcon.Group>
      <Button
        variant="default"
        leftSection={window.live ? <IconPlayerPause size={14} /> : <IconPlayerPlay size={14} />}
        onClick={() => onWindow(window.live ? paused(window, now) : { live: true, length: window.until - window.from })}
      >
        {window.live ? words.pause : words.live}
      </Button>
      <Button variant="default" onClick={() => onTable(!asTable)}>
        {asTable ? words.chart : words.table}
      </Button>
    </div>
  );
}

function Act({ label, act, icon }: { label: string; act: () => void; icon: ReactNode }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={30} aria-label={label} onClick={act}>
        {icon}
      </ActionIcon>
    </Tooltip>
  );
}
