import { Button } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { useMay, useOwns } from "../../app/session";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { text } from "../../text";
import { ChangePanel } from "./ChangePanel";
import { isOver } from "./facts";
import classes from "./Job.module.css";
import { newestFile } from "./logs/files";
import { LineText } from "./logs/LineText";
import { SlotStrip } from "./SlotStrip";

const words = text.job;
const SHOWN = 6;
const LINES = 8;
/** What a job prints is no event. */
const LINES_MS = 3000;

/** How many slots it had and has, why, and what can be changed while it runs. */
export default function Overview({ detail }: { detail: Schemas["JobDetail"] }) {
  const { job } = detail;
  const mayChange = useMay("jobs:write");
  const owns = useOwns(job.owner);
  const canBeChanged = mayChange && owns && !isOver(job);
  const isExplained = job.state === "failed" || (!isOver(job) && !job.num_slots); // what one came for: why it does not run
  const why = <WhyPanel id={job.id} remark={detail.remark ?? ""} />;
  return (
    <div className={classes.columns} data-single={!canBeChanged || undefined}>
      <div className={classes.column}>
        {isExplained && why}
        <SlotStrip detail={detail} />
        {!isExplained && why}
        <NewestLines job={job} />
      </div>
      {canBeChanged && (
        <div className={classes.column}>
          <ChangePanel key={job.id} job={job} />
        </div>
      )}
    </div>
  );
}

function WhyPanel({ id, remark }: { id: string; remark: string }) {
  const why = useGet("/v1/jobs/{job_id}/why", { params: { path: { job_id: id } } });
  const [all, setAll] = useState(false);
  return (
    <Panel title={words.why.title}>
      <Answer query={why} rows={2}>
        {(shown) => {
          const history = shown.history.filter((event, index) => index > 0 || event.message !== shown.sentence);
          const [sentence = "", ...trace] = shown.sentence.split("\n");
          return (
            <>
              <p className={classes.why}>{sentence || words.why.none}</p>
              {trace.length > 0 && (
                <section className={classes.stack} tabIndex={0} aria-label={words.why.whole}>
                  {trace.join("\n")}
                </section>
              )}
              {remark !== "" && <p className="wrap">{remark}</p>}
              {history.length > 0 && (
                <>
                  <h3 className={classes.before}>{words.why.history}</h3>
                  <ol className={classes.history}>
                    {history.slice(0, all ? undefined : SHOWN).map((event) => (
                      <li key={event.seq}>
                        <Time at={event.at} />
                        <span className="wrap">{event.message}</span>
                      </li>
                    ))}
                  </ol>
                  {!all && history.length > SHOWN && (
                    <Button variant="subtle" mt="xs" onClick={() => setAll(true)}>
                      {words.why.more}
                    </Button>
                  )}
                </>
              )}
            </>
          );
        }}
      </Answer>
    </Panel>
  );
}

function NewestLines({ job }: { job: Schemas["Job"] }) {
  const files = useGet("/v1/jobs/{job_id}/logs", { params: { path: { job_id: job.id } } });
  const file = newestFile(files.data ?? []);
  const path = { job_id: job.id, task_id: file?.task_id ?? "", stream: file?.stream ?? "stdout" };
  const lines = useGet(
    "/v1/jobs/{job_id}/logs/{task_id}/{stream}/lines",
    { params: { path, query: { lines: LINES } } },
    { enabled: file !== null, refetchInterval: isOver(job) ? false : LINES_MS },
  );
  return (
    <Panel title={words.lines.title} aside={<Link to={`/jobs/${job.id}/logs`}>{words.lines.all}</Link>}>
      <Answer query={files} rows={2}>
        {() =>
          file === null ? (
            <span className="dim">{words.lines.none}</span>
          ) : (
            <Answer query={lines} rows={2}>
              {(page) => <Lines lines={page.lines} />}
            </Answer>
          )
        }
      </Answer>
    </Panel>
  );
}

function Lines({ lines }: { lines: Schemas["LogLines"]["lines"] }) {
  if (lines.length === 0) return <span className="dim">{words.lines.none}</span>;
  return (
    <section className={classes.lines} tabIndex={0} aria-label={words.lines.title}>
      {lines.map((line) => (
        <div key={line.offset}>
          <LineText text={line.text} />
        </div>
      ))}
    </section>
  );
}
