import { Button, Group, SegmentedControl, TextInput } from "@mantine/core";
import { IconChartAreaLine, IconDownload } from "@tabler/icons-react";
import { Link } from "react-router";
import { downloadOf, type Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { type Column, DataTable } from "../../components/DataTable";
import { Figures } from "../../components/Facts";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { count, percent, slotHours, slots } from "../../format/format";
import { text } from "../../text";
import { dayText, PRESETS, presetOf, type Span, spanOf } from "./span";
import classes from "./Usage.module.css";

const words = text.usage;

type Sum = Schemas["UsageSum"];
type By = Schemas["UsageSummary"]["by"];
const KEYS: readonly By[] = ["user", "queue", "job"];
/** Slot-hours grow with time, of which no event tells. */
const OFTEN_MS = 15_000;

/** What was used, by whom: slot-hours of a time that one chooses. */
export default function Usage() {
  const address = useAddress();
  const by = KEYS.find((key) => key === address.get("by")) ?? "user";
  const span = spanOf(address.get("from"), address.get("until"));
  const summary = useGet(
    "/v1/usage/summary",
    { params: { query: { by, from: span.from, until: span.until } } },
    { keepPrevious: true, refetchInterval: span.until === 0 ? OFTEN_MS : false },
  );
  const table = downloadOf("/v1/usage/summary", {
    by,
    from: String(span.from),
    until: String(span.until),
    format: "csv",
  });
  return (
    <Page
      title={text.nav.usage}
      actions={
        <>
          <Button
            component={Link}
            to={chartOf(by, span)}
            variant="default"
            leftSection={<IconChartAreaLine size={16} />}
          >
            {words.chart}
          </Button>
          <Button component="a" href={table} download variant="default" leftSection={<IconDownload size={16} />}>
            {words.csv}
          </Button>
        </>
      }
    >
      <Group gap="sm">
        <SegmentedControl
          aria-label={words.byLabel}
          data={KEYS.map((key) => ({ value: key, label: words.by[key] ?? key }))}
          value={by}
          onChange={(key) => address.set({ by: key === "user" ? null : key })}
        />
        <Time />
      </Group>
      <Answer query={summary} rows={6}>
        {(found) => <Shown found={found} />}
      </Answer>
    </Page>
  );
}

function Time() {
  const address = useAddress();
  const from = address.get("from");
  const preset = presetOf(from);
  const today = dayText(Date.now() / 1000);
  const day = "days";
  return (
    <>
      <SegmentedControl
        aria-label={words.spanLabel}
        data={[
          ...PRESETS.map((one) => ({ value: one, label: words.presets[one] ?? one })),
          { value: day, label: words.days },
        ]}
        value={preset ?? day}
        onChange={(chosen) =>
          address.set({ from: chosen === day ? today : chosen, until: chosen === day ? today : null })
        }
      />
      {preset === null && (
        <>
          <TextInput
            type="date"
            aria-label={words.from}
            value={from ?? ""}
            max={today}
            onChange={(event) => address.set({ from: event.currentTarget.value })}
          />
          <TextInput
            type="date"
            aria-label={words.until}
            value={address.get("until") ?? ""}
            min={from ?? undefined}
            max={today}
            onChange={(event) => address.set({ until: event.currentTarget.value })}
          />
        </>
      )}
    </>
  );
}

function Shown({ found }: { found: Schemas["UsageSummary"] }) {
  const overview = useGet("/v1/overview", {});
  if (found.sums.length === 0) {
    return <Empty title={words.empty.title} hint={words.empty.hint} command={words.empty.command} />;
  }
  const mean = found.slot_seconds / Math.max(1, found.until_at - found.from_at);
  const all = overview.data?.num_slots;
  return (
    <>
      <Figures
        figures={[
          { label: words.total, value: slotHours(found.slot_seconds) },
          { label: words.jobs, value: count(found.num_jobs) },
          { label: words.mean, value: all ? words.ofSlots(slots(mean), count(all)) : slots(mean) },
        ]}
      />
      <DataTable
        label={words.table(words.by[found.by] ?? found.by)}
        columns={COLUMNS}
        rows={found.sums}
        rowId={(sum) => sum.key}
        hidden={found.by === "job" ? ["jobs"] : []}
        href={(sum) => placeOf(found.by, sum)}
        card={(sum) => <Card sum={sum} by={found.by} />}
        maxHeight="none"
      />
      {found.num_more > 0 && <p className="dim">{words.more(count(found.num_more))}</p>}
    </>
  );
}

/** The chart of the overview over the same time: who had how many slots when. */
function chartOf(by: By, { from, until }: Span): string {
  const end = from < 0 ? "" : `&until=${until === 0 ? Math.floor(Date.now() / 1000) : until}`;
  return `/?by=${by}&from=${from}${end}`;
}

function placeOf(by: By, sum: Sum): string {
  const key = encodeURIComponent(sum.key);
  if (by === "job") return `/jobs/${key}`;
  return by === "queue" ? `/queues/${key}` : `/jobs?owner=${key}`;
}

function Name({ sum }: { sum: Sum }) {
  return (
    <span className="cut" title={sum.name}>
      {sum.key !== sum.name && <span className={classes.id}>{sum.key}</span>}
      {sum.name}
    </span>
  );
}

function Bar({ share }: { share: number }) {
  return (
    <div className={classes.bar} aria-hidden>
      <div style={{ width: `${Math.min(1, share) * 100}%` }} />
    </div>
  );
}

const COLUMNS: readonly Column<Sum>[] = [
  { id: "name", header: words.columns.name, size: 300, cell: ({ row }) => <Name sum={row.original} /> },
  { id: "bar", header: words.columns.bar, meta: { grow: true }, cell: ({ row }) => <Bar share={row.original.share} /> },
  {
    id: "share",
    header: words.columns.share,
    size: 88,
    meta: { numeric: true },
    cell: ({ row }) => percent(row.original.share, 1),
  },
  {
    id: "hours",
    header: words.columns.hours,
    size: 128,
    meta: { numeric: true },
    cell: ({ row }) => slotHours(row.original.slot_seconds),
  },
  {
    id: "jobs",
    header: words.columns.jobs,
    size: 96,
    meta: { numeric: true },
    cell: ({ row }) => count(row.original.num_jobs),
  },
];

function Card({ sum, by }: { sum: Sum; by: By }) {
  return (
    <div className={classes.card}>
      <div className={classes.line}>
        <Name sum={sum} />
        <b className="num">{slotHours(sum.slot_seconds)}</b>
      </div>
      <Bar share={sum.share} />
      <div className={`${classes.line} dim`}>
        <span>{percent(sum.share, 1)}</span>
        {by !== "job" && (
          <span className="num">
            {words.columns.jobs} {count(sum.num_jobs)}
          </span>
        )}
      </div>
    </div>
  );
}
