import { Alert } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { Loading, Problem } from "../../components/Notice";
import { count, time } from "../../format/format";
import { text } from "../../text";
import classes from "./Job.module.css";

const words = text.job.change;
const MOST = 12;

interface Props {
  preview: Schemas["SharePreview"] | undefined;
  error: unknown;
  /** The job that is changed: it is shown first. */
  own: string;
  /** Whether this is the answer to what is typed now, not to what was typed before. */
  isFresh: boolean;
}

/** Who holds how many slots, and would get how many. */
export function PreviewTable({ preview, error, own, isFresh }: Props) {
  if (error != null) return <Problem error={error} />;
  if (preview === undefined) return <Loading rows={2} height={24} />;
  if (preview.refused !== "") {
    return (
      <Alert color="red" variant="outline" title={words.refusedTitle}>
        <span className="wrap">{preview.refused}</span>
      </Alert>
    );
  }
  const mine = preview.workloads.find((workload) => workload.id === own);
  const others = preview.workloads.filter((workload) => workload.id !== own);
  const changed = others.filter((workload) => workload.would_get !== workload.held);
  const numSame = others.length - Math.min(changed.length, MOST);
  const hidden = preview.others;
  return (
    <div style={{ opacity: isFresh ? 1 : 0.6 }} aria-live="polite">
      <table className={classes.preview}>
        <caption className="unseen">{words.preview}</caption>
        <thead>
          <tr>
            <th scope="col">{words.preview}</th>
            <th scope="col" className="num">
              {words.held}
            </th>
            <th scope="col" className="num">
              {words.get}
            </th>
          </tr>
        </thead>
        <tbody>
          {mine && <Row workload={mine} own />}
          {changed.slice(0, MOST).map((workload) => (
            <Row key={workload.id} workload={workload} />
          ))}
          {hidden.held + hidden.would_get > 0 && (
            <tr>
              <th scope="row">{words.others}</th>
              <td className="num">{count(hidden.held)}</td>
              <td className="num">{count(hidden.would_get)}</td>
            </tr>
          )}
          <tr>
            <th scope="row" className="dim">
              {words.free}
            </th>
            <td className="num dim">{count(preview.num_free)}</td>
            <td className="num dim">{count(preview.would_be_free)}</td>
          </tr>
        </tbody>
      </table>
      {mine && <p className="wrap">{mine.reason}</p>}
      {preview.notes.map((note) => (
        <p key={note} className="wrap">
          {note}
        </p>
      ))}
      <p className={classes.caption}>
        {numSame > 0 && `${words.unchanged(numSame)}. `}
        {words.mayChange(time(preview.at))}
      </p>
    </div>
  );
}

function Row({ workload, own = false }: { workload: Schemas["WorkloadPreview"]; own?: boolean }) {
  const change = workload.would_get - workload.held;
  return (
    <tr data-own={own || undefined}>
      <th scope="row">
        <span className={classes.who} title={workload.name}>
          <span>{workload.id}</span>
          <span className="cut">{workload.name}</span>
        </span>
      </th>
      <td className="num">{count(workload.held)}</td>
      <td className="num">
        {change !== 0 && <span aria-hidden>{change > 0 ? "▴ " : "▾ "}</span>}
        {count(workload.would_get)}
      </td>
    </tr>
  );
}
