import { Button, MultiSelect } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { NONE } from "../../format/format";
import { text } from "../../text";
import { ofItself } from "./facts";

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

const COLUMNS: readonly ShortColumn<Schemas["Event"]>[] = [
  { title: words.columns.time, tight: true, cell: (event) => <Time at={event.at} /> },
  { title: words.columns.kind, tight: true, cell: (event) => event.kind },
  { title: words.columns.task, tight: true, cell: (event) => event.task_id ?? NONE },
  { title: words.columns.message, cell: (event) => event.message },
];

/** What happened to the job, the newest first. */
export default function Events({ detail }: { detail: Schemas["JobDetail"] }) {
  const { id, spec } = detail.job;
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
        placeholder={kind.length === 0 ? words.allKinds : ""}
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
              <ShortTable
                label={text.job.tabs.events}
                columns={COLUMNS}
                rows={page.events.map((event) => ({ ...event, message: ofItself(event.message, id, spec.name) }))}
                rowId={(event) => String(event.seq)}
              />
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
