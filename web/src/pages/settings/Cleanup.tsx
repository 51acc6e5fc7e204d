import { Button, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Confirm } from "../../components/Confirm";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { bytes, count, NONE, time } from "../../format/format";
import { text } from "../../text";

type Removal = Schemas["Removal"];
const words = text.settings.cleanup;
const SHOWN = 50;

const COLUMNS: ShortColumn<Removal>[] = [
  {
    title: words.columns.job,
    tight: true,
    cell: ({ job_id: job }) => (job === null ? NONE : <Link to={`/jobs/${encodeURIComponent(job)}`}>{job}</Link>),
  },
  {
    title: words.columns.what,
    tight: true,
    cell: ({ material }) => text.settings.retention.names[material] ?? material,
  },
  { title: words.columns.size, numeric: true, cell: ({ num_bytes: size }) => bytes(size) },
  { title: words.columns.why, cell: ({ why }) => why },
];

/** What the rules would remove now, and to remove it. */
export function Cleanup() {
  const canChange = useCanChange();
  const [asking, setAsking] = useState(false);
  const sweep = useChange("post", "/v1/cleanup", { onSuccess: () => setAsking(false) });
  const dry = sweep.variables?.params?.query?.dry_run === true;
  return (
    <Panel title={words.title}>
      <Stack gap="sm">
        <div className="dim">{words.hint}</div>
        <Group gap="xs">
          <Button
            variant="default"
            disabled={!canChange}
            loading={sweep.isPending && dry}
            onClick={() => sweep.mutate({ params: { query: { dry_run: true } } })}
          >
            {words.plan}
          </Button>
          <Button variant="default" disabled={!canChange} onClick={() => setAsking(true)}>
            {words.run}
          </Button>
        </Group>
        {sweep.error !== null && !asking && <Problem error={sweep.error} />}
        {sweep.data && <Swept sweep={sweep.data} />}
      </Stack>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={words.ask}
        action={words.do}
        pending={sweep.isPending}
        error={sweep.error}
        onConfirm={() => sweep.mutate({ params: { query: { dry_run: false } } })}
      >
        {words.what}
      </Confirm>
    </Panel>
  );
}

function Swept({ sweep }: { sweep: Schemas["Sweep"] }) {
  const failed = sweep.failed ?? [];
  if (sweep.removals.length === 0 && failed.length === 0) return <div role="status">{words.nothing}</div>;
  const say = sweep.dry_run ? words.would : words.did;
  return (
    <>
      <strong role="status">{say(bytes(sweep.num_bytes), time(sweep.at))}</strong>
      {failed.map((sentence) => (
        <div key={sentence} className="wrap">
          {sentence}
        </div>
      ))}
      <ShortTable
        label={words.list}
        columns={COLUMNS}
        rows={sweep.removals.slice(0, SHOWN)}
        rowId={(removal) => `${removal.job_id} ${removal.material}`}
      />
      {sweep.removals.length > SHOWN && <div className="dim">{words.first(SHOWN, count(sweep.removals.length))}</div>}
    </>
  );
}
