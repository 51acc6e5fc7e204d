import { Button } from "@mantine/core";
import { Link, useNavigate, useParams } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { type Column, DataTable } from "../../components/DataTable";
import { Facts, Figures } from "../../components/Facts";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { State } from "../../components/State";
import { Swatch } from "../../components/Swatch";
import { useAddress } from "../../components/useAddress";
import { count, counted } from "../../format/format";
import { text } from "../../text";
import type { QueueView } from "./bar";
import { Legend } from "./QueueBar";
import { QueueDialog } from "./QueueDialog";
import { QueueRows } from "./QueueRows";
import { sayField } from "./queue_fields";
import classes from "./queues.module.css";

const words = text.queues;
const LIVING = ["pending", "starting", "running", "paused", "stopping"];
const MOST = 100;

/** One queue: what it deserves and uses beside the others of its group, its jobs now, and what people said of it. */
export default function QueuePage() {
  const { name = "" } = useParams();
  const query = useGet("/v1/queues/{name}", { params: { path: { name } } });
  const mayWrite = useMay("pool:write");
  const address = useAddress();
  return (
    <Page
      title={name}
      heading={<Crumbs above={[{ to: "/queues", title: text.nav.queues }]} name={name} />}
      actions={
        mayWrite &&
        query.data !== undefined && (
          <>
            {name !== "default" && (
              <Button variant="default" onClick={() => address.set({ dialog: "delete" })}>
                {text.remove}
              </Button>
            )}
            <Button onClick={() => address.set({ dialog: "edit" })}>{text.edit}</Button>
          </>
        )
      }
    >
      <Answer query={query} rows={5}>
        {(queue) => (
          <>
            <Shown queue={queue} />
            {mayWrite && address.get("dialog") === "edit" && (
              <QueueDialog queue={queue} onClose={() => address.set({ dialog: null })} />
            )}
            {mayWrite && address.get("dialog") === "delete" && (
              <Remove queue={queue} onClose={() => address.set({ dialog: null })} />
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

function Shown({ queue: view }: { queue: QueueView }) {
  const { queue } = view;
  const all = useGet("/v1/queues", {});
  const neighbours = all.data?.queues.filter((one) => one.queue.resource_group === queue.resource_group) ?? [view];
  return (
    <>
      <Figures
        figures={[
          { label: words.figures.used, value: words.ofSlots(count(view.num_held), count(view.num_slots)) },
          { label: words.figures.deserved, value: count(view.num_deserved) },
          { label: words.figures.borrowed, value: count(view.num_borrowed) },
          { label: words.figures.lent, value: count(view.num_lent) },
          { label: words.figures.running, value: count(view.num_running) },
          { label: words.figures.waiting, value: count(view.num_waiting) },
        ]}
      />
      {view.notes.map((note) => (
        <p key={note} className={`${classes.remark} wrap`}>
          {note}
        </p>
      ))}
      <div className={classes.columns}>
        <div className={classes.stack}>
          <Panel title={words.shares(queue.resource_group)} aside={<Legend />}>
            <div className={classes.flush}>
              <QueueRows queues={neighbours} current={queue.name} />
            </div>
          </Panel>
          <Jobs queue={view} />
        </div>
        <Panel title={words.settings}>
          <Facts facts={factsOf(queue)} />
        </Panel>
      </div>
    </>
  );
}

function factsOf(queue: Schemas["Queue"]) {
  const group = (
    <Link className={classes.link} to={`/queues/groups/${encodeURIComponent(queue.resource_group)}`}>
      {queue.resource_group}
    </Link>
  );
  const fields = [
    "policy",
    "preemption",
    "weight",
    "open",
    "max_tasks_per_job",
    "default_environment",
    "run_as",
    "description",
    "owner",
  ];
  return [
    { label: words.group, value: group },
    ...fields.map((field) => ({ label: words.fields[field] ?? field, value: sayField(queue, field) })),
  ];
}

type Row = Schemas["JobRow"];

function Jobs({ queue: view }: { queue: QueueView }) {
  const { name } = view.queue;
  const maySubmit = useMay("jobs:write");
  const jobs = useGet("/v1/jobs/rows", {
    params: { query: { queue: [name], state: LIVING, sort: "-slots", limit: MOST } },
  });
  const all = (
    <Link className={classes.link} to={`/jobs?queue=${encodeURIComponent(name)}`}>
      {words.allJobs}
    </Link>
  );
  return (
    <Panel title={words.jobs} aside={all}>
      <Answer query={jobs} rows={2}>
        {(page) => {
          const others = view.num_running + view.num_waiting - page.total;
          const hint = { hint: words.noJobs.hint, command: words.submitCommand(name) };
          return (
            <>
              {(page.total > 0 || others <= 0) && (
                <DataTable
                  label={words.jobs}
                  columns={COLUMNS}
                  rows={page.rows}
                  rowId={(row) => row.id}
                  href={(row) => `/jobs/${encodeURIComponent(row.id)}`}
                  card={(row) => <Card row={row} />}
                  maxHeight="400px"
                  empty={<Empty title={words.noJobs.title} {...(maySubmit && hint)} />}
                />
              )}
              {others > 0 && <div className={classes.others}>{words.others(count(others), others === 1)}</div>}
            </>
          );
        }}
      </Answer>
    </Panel>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "job",
    header: words.jobColumns.job,
    size: 176,
    cell: ({ row }) => (
      <>
        <Swatch colour={row.original.colour} />
        <span className="cut" title={row.original.name}>
          {row.original.id} {row.original.name}
        </span>
      </>
    ),
  },
  { id: "state", header: words.jobColumns.state, size: 112, cell: ({ row }) => <State state={row.original.state} /> },
  {
    id: "slots",
    header: words.jobColumns.slots,
    size: 64,
    meta: { numeric: true },
    cell: ({ row }) => count(row.original.num_slots),
  },
  {
    id: "limits",
    header: words.jobColumns.limits,
    size: 88,
    meta: { numeric: true },
    cell: ({ row }) => limitsOf(row.original),
  },
  {
    id: "owner",
    header: words.jobColumns.owner,
    size: 88,
    cell: ({ row }) => <span title={row.original.owner}>{row.original.owner}</span>,
  },
  {
    id: "why",
    header: words.jobColumns.why,
    meta: { grow: true },
    cell: ({ row }) => (
      <span className={classes.sentence} title={row.original.sentence}>
        {row.original.sentence}
      </span>
    ),
  },
];

function limitsOf(row: Row): string {
  return row.min_slots === row.max_slots ? count(row.max_slots) : `${count(row.min_slots)}–${count(row.max_slots)}`;
}

function Card({ row }: { row: Row }) {
  return (
    <div className={classes.card}>
      <span className="cut">
        <Swatch colour={row.colour} /> {row.id} {row.name}
      </span>
      <State state={row.state} />
      <span className={`${classes.sentence} cut`} title={row.sentence}>
        {row.sentence}
      </span>
      <span className="num">{counted(row.num_slots, "slot")}</span>
    </div>
  );
}

function Remove({ queue, onClose }: { queue: QueueView; onClose: () => void }) {
  const navigate = useNavigate();
  const { name } = queue.queue;
  const remove = useChange("delete", "/v1/queues/{name}", { onSuccess: () => navigate("/queues") });
  return (
    <Confirm
      opened
      onClose={onClose}
      title={words.removeQueue(name)}
      action={words.remove}
      pending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate({ params: { path: { name }, header: { "if-match": `"${queue.revision}"` } } })}
    >
      {words.removeQueueHint}
    </Confirm>
  );
}
