import type { Schemas } from "../../api/client";
import type { Column } from "../../components/DataTable";
import { ProgressBar } from "../../components/Progress";
import { State } from "../../components/State";
import { Swatch } from "../../components/Swatch";
import { Age } from "../../components/Time";
import { count, duration, NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Jobs.module.css";

export type JobRow = Schemas["JobRow"];

const words = text.jobs;
const title = words.columns;

/** The columns of the table, made once. */
export const COLUMNS: readonly Column<JobRow>[] = [
  {
    id: "id",
    header: title.id,
    size: 104,
    meta: { sort: "submitted" },
    cell: ({ row }) => (
      <>
        <Swatch colour={row.original.colour} />
        <span className="cut">{row.original.id}</span>
      </>
    ),
  },
  {
    id: "name",
    header: title.name,
    size: 144,
    meta: { sort: "name", grow: true },
    cell: ({ row }) => <span title={row.original.name}>{row.original.name}</span>,
  },
  { id: "kind", header: title.kind, size: 84, cell: ({ row }) => words.kinds[row.original.kind] },
  {
    id: "state",
    header: title.state,
    size: 112,
    meta: { sort: "state" },
    cell: ({ row }) => <State state={row.original.state} />,
  },
  {
    id: "slots",
    header: title.slots,
    size: 84,
    meta: { numeric: true, sort: "slots" },
    cell: ({ row }) => <Held row={row.original} />,
  },
  { id: "of", header: title.of, size: 60, meta: { numeric: true }, cell: ({ row }) => rangeOf(row.original) },
  {
    id: "progress",
    header: title.progress,
    size: 132,
    cell: ({ row }) =>
      row.original.progress === null ? (
        NONE
      ) : (
        <ProgressBar
          fraction={row.original.progress.fraction}
          label={`${title.progress} ${row.original.id}`}
          over={row.original.ended_at !== null}
        />
      ),
  },
  { id: "next", header: title.next, size: 140, cell: ({ row }) => nextOf(row.original) },
  {
    id: "queue",
    header: title.queue,
    size: 90,
    meta: { sort: "queue" },
    cell: ({ row }) => <span title={row.original.queue}>{row.original.queue}</span>,
  },
  {
    id: "priority",
    header: title.priority,
    size: 92,
    meta: { numeric: true, sort: "priority" },
    cell: ({ row }) => count(row.original.priority),
  },
  {
    id: "owner",
    header: title.owner,
    size: 86,
    meta: { sort: "owner" },
    cell: ({ row }) => <span title={row.original.owner}>{row.original.owner}</span>,
  },
  {
    id: "age",
    header: title.age,
    size: 76,
    meta: { numeric: true },
    cell: ({ row }) => <Age since={row.original.submitted_at} />,
  },
  {
    id: "tags",
    header: title.tags,
    size: 140,
    cell: ({ row }) => <span title={tagsOf(row.original)}>{tagsOf(row.original) || NONE}</span>,
  },
  {
    id: "sentence",
    header: title.sentence,
    size: 280,
    meta: { grow: true },
    cell: ({ row }) => <span title={row.original.sentence}>{row.original.sentence || NONE}</span>,
  },
];

export const COLUMN_IDS: readonly string[] = COLUMNS.map((column) => column.id ?? "");
export const USUAL: readonly string[] = COLUMN_IDS.filter((id) => !["kind", "tags", "sentence"].includes(id));

export function rangeOf(row: JobRow): string {
  return row.min_slots === row.max_slots ? count(row.max_slots) : `${row.min_slots}–${row.max_slots}`;
}

function tagsOf(row: JobRow): string {
  return Object.entries(row.tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** What is to come: its place and what it needs, the time left, or how long it took. */
export function nextOf(row: JobRow): string {
  if (row.waiting !== null) return words.place(row.waiting.place, row.waiting.num_waiting, row.waiting.num_needed);
  if (row.ended_at !== null) {
    return row.started_at === null ? NONE : words.took(duration(row.ended_at - row.started_at));
  }
  const left = row.progress?.eta_s;
  return left == null ? NONE : words.left(duration(left));
}

/** The slots that it holds; with those that it is to have, if they are others. */
export function Held({ row }: { row: JobRow }) {
  if (row.ended_at !== null) return <>{NONE}</>;
  if (row.target_slots === row.num_slots || row.state === "stopping") return <>{count(row.num_slots)}</>;
  return (
    <span title={words.toTarget(count(row.num_slots), count(row.target_slots))}>
      {row.num_slots}→{row.target_slots}
    </span>
  );
}

/** A job where there is no room for a table. */
export function JobCard({ row }: { row: JobRow }) {
  return (
    <div className={classes.card}>
      <div className={classes.cardHead}>
        <Swatch colour={row.colour} />
        <b>{row.id}</b>
        <span className="cut">{row.name}</span>
        <span className="num dim">
          <Age since={row.submitted_at} />
        </span>
      </div>
      <div className={classes.cardLine}>
        <State state={row.state} />
        {row.ended_at === null && (
          <span className="num">
            <Held row={row} /> / {rangeOf(row)}
          </span>
        )}
        <span className="dim cut">{nextOf(row)}</span>
      </div>
      {row.progress !== null && row.ended_at === null && (
        <ProgressBar fraction={row.progress.fraction} label={`${title.progress} ${row.id}`} />
      )}
    </div>
  );
}
