import { Button, MultiSelect } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Job.module.css";

const words = text.job.events;
const PART = 200;
const MOST = 10_000;
const KINDS: readonly Schemas["EventKind"][] = [
  "job.submitted",
  "job.state",
  "job.changed",
  "job.stalled",
  "job.resumed",
  "job.notified",
  "decision",
  "task.started",
  "task.ready",
  "task.stacks",
  "task.entered",
  "task.left",
  "task.lost",
  "generation.forming",
  "generation.switched",
  "generation.abandoned",
  "epoch.finished",
  "checkpoint.saved",
  "checkpoint.failed",
  "model.saved",
  "claim.weakened",
  "slots.changed",
  "warning",
];

/** What happened to the job, the newest first. */
export default function Events({ detail }: { detail: Schemas["JobDetail"] }) {
  const { id } = detail.job;
  const address = useAddress();
  const kind = KINDS.filter((one) => address.all("kind").includes(one));
  const [limit, setLimit] = useState(PART);
  const events = useGet(
    "/v1/events",
    { params: { query: { job_id: id, order: "newest", limit, ...(kind.length > 0 && { kind }) } } },
    { keepPrevious: true },
  );
  return (
    <>
      <MultiSelect
        label={words.kind}
        data={[...KINDS]}
        value={kind}
        clearable
        searchable
        maw={480}
        onChange={(values) => address.set({ kind: values })}
      />
      <Answer query={events}>
        {(page) =>
          page.events.length === 0 ? (
            <span className="dim">{words.none}</span>
          ) : (
            <>
              <section className={classes.box} tabIndex={0} aria-label={text.job.tabs.events}>
                <table className={classes.table}>
                  <thead>
                    <tr>
                      <th scope="col">{words.columns.time}</th>
                      <th scope="col">{words.columns.kind}</th>
                      <th scope="col">{words.columns.task}</th>
                      <th scope="col">{words.columns.message}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {page.events.map((event) => (
                      <tr key={event.seq}>
                        <td style={{ whiteSpace: "nowrap" }}>
                          <Time at={event.at} />
                        </td>
                        <td style={{ whiteSpace: "nowrap" }}>{event.kind}</td>
                        <td style={{ whiteSpace: "nowrap" }}>{event.task_id ?? NONE}</td>
                        <td className="wrap">{event.message}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </section>
              {page.events.length >= limit && limit < MOST && (
                <Button variant="default" onClick={() => setLimit(Math.min(MOST, limit * 4))}>
                  {words.older}
                </Button>
              )}
            </>
          )
        }
      </Answer>
    </>
  );
}
