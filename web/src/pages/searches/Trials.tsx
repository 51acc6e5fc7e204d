import { Button, MultiSelect } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { Link } from "react-router";
import { refetch } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import { keyOf } from "../../api/queries";
import { type Column, DataTable } from "../../components/DataTable";
import { Loading, Problem } from "../../components/Notice";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { PAGE, usePages } from "../../components/usePages";
import { measure, NONE } from "../../format/format";
import { text } from "../../text";
import { CompareLink } from "../jobs/CompareLink";
import classes from "./Searches.module.css";
import { Status } from "./Status";
import { type SearchView, type TrialRow, valueText } from "./shown";

const words = text.searches.trials;
const PATH = "/v1/searches/{name}/trials/rows";
const STATES: readonly Schemas["TrialState"][] = ["running", "paused", "completed", "pruned", "failed", "stopped"];
const SORTS = ["number", "-number", "value", "-value", "duration", "-duration"] as const;
type Sort = (typeof SORTS)[number];
const REFRESH_MS = 3_000;

/** A trial that came with its search has no job to compare. */
const idOf = (trial: TrialRow) => trial.job_id || `trial ${trial.number}`;

/** All trials of a search, page by page as one looks at them. */
export function Trials({ search }: { search: SearchView }) {
  const address = useAddress();
  const states = address
    .all("state")
    .filter((one): one is Schemas["TrialState"] => (STATES as readonly string[]).includes(one));
  const sort: Sort = SORTS.find((one) => one === address.get("sort")) ?? "number";
  const query = { sort, ...(states.length > 0 && { state: states }) };
  const { name } = search;
  const pages = usePages<TrialRow>(keyOf(PATH, { params: { path: { name }, query } }), async (offset, signal) => {
    const params = { path: { name }, query: { ...query, offset, limit: PAGE } };
    const page = await call("get", PATH, { params }, signal);
    return { rows: page.trials, total: page.total };
  });
  const running = search.state === "running";
  useEffect(() => {
    if (!running) return;
    const timer = window.setInterval(() => {
      if (document.visibilityState === "visible") refetch((path) => path === PATH);
    }, REFRESH_MS);
    return () => window.clearInterval(timer);
  }, [running]);
  const columns = useColumns(search);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const selection = useMemo(() => ({ ids: chosen, change: setChosen, takes: hasJob }), [chosen]);
  return (
    <>
      <MultiSelect
        aria-label={words.filter}
        placeholder={states.length === 0 ? words.all : ""}
        maw={420}
        clearable
        data={STATES.map((value) => ({ value, label: text.searches.states[value] }))}
        value={states}
        onChange={(value) => address.set({ state: value })}
      />
      {chosen.size > 0 && (
        <div className={classes.chosen} role="toolbar" aria-label={text.jobs.selected(chosen.size)}>
          <b className="num">{text.jobs.selected(chosen.size)}</b>
          <CompareLink ids={[...chosen]} />
          <Button variant="subtle" onClick={() => setChosen(new Set())}>
            {text.jobs.clearSelection}
          </Button>
        </div>
      )}
      {pages.error && <Problem error={pages.error} />}
      {pages.total === null && pages.error === null && <Loading rows={8} />}
      {pages.total !== null && (
        <DataTable
          label={words.label}
          columns={columns}
          rows={pages.rows}
          rowId={idOf}
          selection={selection}
          sort={sort}
          onSort={(value) => address.set({ sort: value })}
          onRange={pages.onRange}
          maxHeight="max(320px, calc(100dvh - 340px))"
          card={(trial) => <Card trial={trial} />}
          empty={pages.total === 0 && <p className="dim">{states.length > 0 ? words.none : words.notYet}</p>}
        />
      )}
    </>
  );
}

/** Trials are compared by their jobs; one that was only told of has none. */
function hasJob(trial: TrialRow): boolean {
  return trial.job_id !== "";
}

function useColumns(search: SearchView): readonly Column<TrialRow>[] {
  const names = Object.keys(search.settings.parameters).join("\n");
  const metrics = search.settings.objectives.map((objective) => objective.metric).join("\n");
  const resource = search.settings.halving?.resource ?? "epoch";
  const isPopulation = search.settings.population != null;
  const bounded = search.settings.constraints.length > 0;
  return useMemo(
    () => [
      {
        id: "number",
        header: words.number,
        size: 72,
        meta: { numeric: true, sort: "number" },
        cell: ({ row: { original } }) => original.number,
      },
      {
        id: "state",
        header: words.state,
        size: 120,
        cell: ({ row: { original } }) => <Status state={original.state} />,
      },
      ...metrics.split("\n").map(
        (metric, index): Column<TrialRow> => ({
          id: `result ${metric}`,
          header: metric,
          size: 110,
          meta: { numeric: true, ...(index === 0 && { sort: "value" }) },
          cell: ({ row: { original } }) =>
            original.results === null && index === 0 && original.reported !== null ? (
              <span className="dim">{measure(original.reported)}</span>
            ) : (
              measure(original.results?.[index])
            ),
        }),
      ),
      {
        id: "at",
        header: words.at,
        size: 110,
        meta: { numeric: true },
        cell: ({ row: { original } }) =>
          original.reported_at === null ? NONE : words.epoch(String(original.reported_at), words.resources[resource]),
      },
      ...names.split("\n").map(
        (name): Column<TrialRow> => ({
          id: `value ${name}`,
          header: <span title={name}>{name}</span>,
          size: 110,
          meta: { numeric: true },
          cell: ({ row: { original } }) => (
            <span title={valueText(original.values[name])}>{valueText(original.values[name])}</span>
          ),
        }),
      ),
      ...(bounded
        ? [
            {
              id: "violation",
              header: words.violation,
              size: 90,
              meta: { numeric: true },
              cell: ({ row: { original } }) => (original.violation ? measure(original.violation) : NONE),
            } satisfies Column<TrialRow>,
          ]
        : []),
      ...(isPopulation
        ? [
            {
              id: "parent",
              header: words.parent,
              size: 100,
              cell: ({ row: { original } }) =>
                original.parent === null ? NONE : `${original.parent} at ${original.parent_epoch}`,
            } satisfies Column<TrialRow>,
          ]
        : []),
      {
        id: "duration",
        header: words.duration,
        size: 90,
        meta: { numeric: true, sort: "duration" },
        cell: ({ row: { original } }) => <Age since={original.begun_at} until={original.ended_at} />,
      },
      {
        id: "job",
        header: words.job,
        size: 100,
        cell: ({ row: { original } }) =>
          original.job_id === "" ? NONE : <Link to={`/jobs/${original.job_id}`}>{original.job_id}</Link>,
      },
      {
        id: "reason",
        header: words.reason,
        size: 220,
        meta: { grow: true },
        cell: ({ row: { original } }) => <span title={original.reason}>{original.reason}</span>,
      },
    ],
    [names, metrics, resource, isPopulation, bounded],
  );
}

function Card({ trial }: { trial: TrialRow }) {
  const values = Object.entries(trial.values).map(([name, value]) => `${name} ${valueText(value)}`);
  return (
    <div>
      <div style={{ display: "flex", justifyContent: "space-between", gap: 12 }}>
        <strong>
          {text.searches.figures.by(trial.number)} · {measure(trial.results?.[0] ?? trial.reported)}
        </strong>
        <Status state={trial.state} />
      </div>
      <div className="dim cut">{values.join(" · ")}</div>
      {trial.job_id !== "" && <Link to={`/jobs/${trial.job_id}`}>{trial.job_id}</Link>}
    </div>
  );
}
