import { type ShortColumn, ShortTable } from "../components/ShortTable";
import { Swatch } from "../components/Swatch";
import { Time } from "../components/Time";
import { count } from "../format/format";
import { text } from "../text";
import { slotsOf } from "./Marks";
import type { SlotMark } from "./marks";
import classes from "./Slots.module.css";

const words = text.slots.marks;

const COLUMNS: readonly ShortColumn<SlotMark>[] = [
  { title: words.columns.time, tight: true, cell: (mark) => <Time at={mark.at} /> },
  {
    title: words.columns.who,
    tight: true,
    cell: (mark) => (
      <span>
        <Swatch colour={mark.colour ?? null} size={10} /> {mark.job_id ?? mark.name}
      </span>
    ),
  },
  { title: words.columns.what, tight: true, cell: (mark) => words[mark.kind] },
  { title: words.columns.slots, numeric: true, cell: (mark) => (mark.to_slots == null ? "" : slotsOf(mark)) },
  {
    title: words.columns.why,
    cell: (mark) => (mark.who === "" ? mark.message : `${mark.message} · ${words.by(mark.who)}`),
  },
];

/** The same as the chart, in rows: what happened, newest first. */
export function MarksTable({ marks, more, caption }: { marks: readonly SlotMark[]; more: number; caption: string }) {
  return (
    <div className={classes.rows}>
      <p className="dim">{caption}</p>
      <ShortTable
        label={words.label}
        columns={COLUMNS}
        rows={[...marks].sort((one, other) => other.seq - one.seq)}
        rowId={(mark) => String(mark.seq)}
      />
      {marks.length === 0 && <p className="dim">{words.none}</p>}
      {more > 0 && <p className="dim">{words.older(count(more))}</p>}
    </div>
  );
}
