import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { cache } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import { useEvents } from "../../api/live";
import type { Refused } from "../../api/problem";
import { Problem } from "../../components/Notice";
import { Time } from "../../components/Time";
import { count, counted } from "../../format/format";
import { text } from "../../text";
import classes from "./Outcome.module.css";
import type { Body } from "./request";

export type Preview = Schemas["SubmissionPreview"];

const words = text.submission;
const TYPING_MS = 250;
/** What changes who has which slots. */
const CHANGES: readonly string[] = ["decision", "job.submitted", "job.state", "job.changed", "queue.changed"];

/** What would come of it if it was submitted now: asked anew while one types, and when something happens. */
export function usePreview(body: Body) {
  const [asked] = useDebouncedValue(JSON.stringify({ ...body, script: body.script ?? "train.py" }), TYPING_MS);
  const preview = useQuery<Preview, Refused>({
    queryKey: ["what-if", "submission", asked],
    queryFn: ({ signal }) => call("post", "/v1/jobs/preview", { body: JSON.parse(asked) }, signal),
    placeholderData: (before) => before,
    gcTime: 10_000,
  });
  useEvents((events) => {
    if (events.some((event) => CHANGES.includes(event.kind))) void cache.invalidateQueries({ queryKey: ["what-if"] });
  });
  useEffect(() => () => cache.removeQueries({ queryKey: ["what-if", "submission"] }), []);
  return preview;
}

interface Props {
  preview: ReturnType<typeof usePreview>;
  /** What is typed cannot be asked for. */
  isWrong: boolean;
}

export function Outcome({ preview, isWrong }: Props) {
  if (isWrong) return <p className={classes.note}>{words.mend}</p>;
  if (preview.data === undefined) {
    return preview.error === null ? <p className={classes.note}>{words.asking}</p> : <Problem error={preview.error} />;
  }
  return <Shown data={preview.data} />;
}

function Shown({ data }: { data: Preview }) {
  if (data.refused !== "" || data.problems.length > 0) {
    return (
      <div className={classes.outcome} aria-live="polite">
        <p className={classes.refused}>{words.refused}</p>
        {data.problems.length === 0 && <p className="wrap">{data.refused}</p>}
        <ul className={classes.problems}>
          {data.problems.map((problem) => (
            <li key={`${problem.field} ${problem.message}`} className="wrap">
              {problem.message}
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div className={classes.outcome} aria-live="polite">
      <p className={classes.headline}>{headlineOf(data)}</p>
      {data.takes.map((taken) => (
        <p key={taken.id} className="wrap">
          {words.takes(counted(taken.num_slots, "slot"), `${taken.id} ${taken.name}`)}
        </p>
      ))}
      {data.num_taken_from_others > 0 && (
        <p>{words.takes(counted(data.num_taken_from_others, "slot"), words.others)}</p>
      )}
      {data.waiting && <p>{words.place(count(data.waiting.place), count(data.waiting.num_waiting))}</p>}
      {data.sentence !== "" && <p className={`${classes.sentence} wrap`}>{data.sentence}</p>}
      {data.notes.map((note) => (
        <p key={note} className="wrap">
          {note}
        </p>
      ))}
      <p className={classes.note}>
        <Time at={data.at} /> · {words.mayChange}
      </p>
    </div>
  );
}

function headlineOf(data: Preview): string {
  if (!data.starts) return data.would_get > 0 ? words.startsSoon : words.waits;
  const starts = words.starts(counted(data.starts_with, "slot"));
  return data.would_get > data.starts_with ? `${starts} ${words.grows(counted(data.would_get, "slot"))}` : starts;
}
