import { Button, Code, Group, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { CopyButton } from "../../components/Copy";
import { type Fact, Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { count } from "../../format/format";
import { text } from "../../text";
import { commandLine } from "./command";
import { DifferencesPanel } from "./DifferencesPanel";
import { flatten, linesOfTags, rangeOf } from "./facts";
import classes from "./Job.module.css";
import { jobsOf } from "./metrics/curves";

const words = text.job.config;

/** What was submitted, what is so now, and in what it differs from another job. */
export default function Configuration({ detail }: { detail: Schemas["JobDetail"] }) {
  const { job } = detail;
  const address = useAddress();
  const [other] = jobsOf(address.get("diff"));
  const [typed, setTyped] = useState(other ?? "");
  const command = commandLine(job);
  const show = (event: FormEvent) => {
    event.preventDefault();
    address.set({ diff: jobsOf(typed)[0] ?? null });
  };
  return (
    <>
      <form onSubmit={show} className={classes.tools}>
        <TextInput
          label={words.diff}
          placeholder={words.diffHint}
          maxLength={40}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Button type="submit" variant="default">
          {text.jobs.show}
        </Button>
      </form>
      {other !== undefined && <DifferencesPanel mine={job.id} theirs={other} />}
      <div className={classes.columns}>
        <Panel title={words.asked}>
          <Facts facts={[...flatten(job.spec)].map(([field, value]): Fact => ({ label: field, value }))} />
        </Panel>
        <div className={classes.column}>
          <Panel title={words.now}>
            <Facts facts={factsOf(job)} />
          </Panel>
          <Panel title={words.command} aside={<CopyButton value={command} />}>
            <Group gap="xs">
              <Code className="wrap">{command}</Code>
            </Group>
          </Panel>
        </div>
      </div>
    </>
  );
}

function factsOf(job: Schemas["Job"]): Fact[] {
  const lines = words.lines;
  const again = job.rerun_of;
  const after = [...(job.after ?? []), ...(job.after_any ?? [])];
  const tags = linesOfTags(job.tags ?? {});
  const facts: (Fact | null)[] = [
    { label: lines.priority, value: count(job.priority) },
    { label: lines.tasks, value: rangeOf(job.min_tasks, job.max_tasks) },
    { label: lines.queue, value: job.queue ?? "default" },
    tags === "" ? null : { label: lines.tags, value: <span style={{ whiteSpace: "pre-line" }}>{tags}</span> },
    { label: lines.submitted, value: <Time at={job.submitted_at} /> },
    { label: lines.started, value: <Time at={job.started_at} /> },
    job.ended_at == null ? null : { label: lines.ended, value: <Time at={job.ended_at} /> },
    after.length === 0 ? null : { label: lines.after, value: after.join(", ") },
    again == null ? null : { label: lines.rerun, value: <Link to={`/jobs/${again}`}>{again}</Link> },
    { label: lines.restarts, value: count(job.num_restarts ?? 0) },
    { label: lines.redone, value: count(job.num_redone_steps ?? 0) },
    job.digest ? { label: lines.digest, value: <span className="mono">{job.digest}</span> } : null,
    job.fingerprint ? { label: lines.fingerprint, value: <span className="mono">{job.fingerprint}</span> } : null,
  ];
  return facts.filter((fact) => fact !== null);
}
