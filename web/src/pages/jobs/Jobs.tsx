import { Button } from "@mantine/core";
import { useCallback, useMemo, useRef, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { call } from "../../api/client";
import { useMay, useOwnership } from "../../app/session";
import { DataTable } from "../../components/DataTable";
import { Empty, Loading, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { usePages } from "../../components/usePages";
import { count } from "../../format/format";
import { text } from "../../text";
import { Bulk } from "./Bulk";
import { COLUMN_IDS, COLUMNS, JobCard, type JobRow, USUAL } from "./columns";
import { ColumnMenu, FilterMenu, FilterPills, SearchField } from "./Filters";
import classes from "./Jobs.module.css";
import { columnsOf, isFiltered, queryOf, type RowsQuery } from "./query";
import { steady } from "./steady";
import { QuickViews, SavedViews } from "./Views";

const words = text.jobs;
const idOf = (row: JobRow) => row.id;
const hrefOf = (row: JobRow) => `/jobs/${row.id}`;
const cardOf = (row: JobRow) => <JobCard row={row} />;

/** All jobs: what runs, what waits and for what. */
export default function Jobs() {
  const [search] = useSearchParams();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const query = useMemo(() => queryOf(search), [search]);
  return (
    <Page
      title={words.list}
      actions={
        <>
          <QuickViews />
          <SavedViews />
        </>
      }
    >
      <div className={classes.bar}>
        <SearchField />
        <FilterMenu />
        <ColumnMenu />
      </div>
      <FilterPills />
      {chosen.size > 0 && <Bulk ids={chosen} onClear={() => setChosen(new Set())} />}
      <List key={JSON.stringify(query)} query={query} chosen={chosen} onChoose={setChosen} />
    </Page>
  );
}

interface Props {
  query: RowsQuery;
  chosen: ReadonlySet<string>;
  onChoose: (ids: ReadonlySet<string>) => void;
}

function List({ query, chosen, onChoose }: Props) {
  const address = useAddress();
  const [search] = useSearchParams();
  const pages = usePages(["get", "/v1/jobs/rows", { params: { query } }], (offset, signal) =>
    call("get", "/v1/jobs/rows", { params: { query: { ...query, offset } } }, signal),
  );
  const list = useSteady(pages, chosen.size > 0);
  const shown = columnsOf(address.get("cols"), COLUMN_IDS, USUAL);
  const hidden = useMemo(() => COLUMN_IDS.filter((id) => !shown.has(id)), [shown]);
  const owns = useOwnership();
  const selection = useMemo(
    () => ({ ids: chosen, change: onChoose, takes: (row: JobRow) => owns(row.owner) }),
    [chosen, onChoose, owns],
  );
  if (pages.error !== null && pages.total === null) return <Problem error={pages.error} />;
  if (pages.total === null) return <Loading rows={8} />;
  return (
    <section aria-label={words.list} onMouseEnter={() => list.hover(true)} onMouseLeave={() => list.hover(false)}>
      {list.notice !== null && (
        <div className={classes.newer} role="status">
          {list.notice}
          <Button variant="default" onClick={list.release}>
            {words.show}
          </Button>
        </div>
      )}
      <DataTable
        key={list.round}
        label={words.list}
        columns={COLUMNS}
        rows={list.rows}
        rowId={idOf}
        href={hrefOf}
        sort={query.sort}
        onSort={(sort) => address.set({ sort: sort === "-submitted" ? null : sort })}
        hidden={hidden}
        selection={selection}
        onRange={list.onRange}
        card={cardOf}
        empty={isFiltered(search) ? <Nothing /> : <NoJobs />}
      />
      {list.rows.length > 0 && (
        <p className={classes.total}>{words.total(count(list.rows.length), list.rows.length === 1)}</p>
      )}
    </section>
  );
}

function Nothing() {
  return <Empty title={words.empty.filtered} hint={words.empty.filteredHint} />;
}

function NoJobs() {
  const maySubmit = useMay("jobs:write");
  return (
    <Empty
      title={words.empty.title}
      hint={words.empty.hint}
      command={words.empty.command}
      action={
        maySubmit && (
          <Button component={Link} to="/submit">
            {text.submit}
          </Button>
        )
      }
    />
  );
}

/** Rows that do not jump while the pointer is on them, some are selected, or one has scrolled away from the top. */
function useSteady(pages: ReturnType<typeof usePages<JobRow>>, isSelecting: boolean) {
  const [hovered, hover] = useState(false);
  const [isAway, setAway] = useState(false);
  const [round, setRound] = useState(0);
  const held = useRef<readonly (JobRow | undefined)[] | null>(null);
  const { rows, onRange: tell } = pages;
  const isHeld = (hovered || isSelecting || isAway) && rows.length > 0;
  if (!isHeld) held.current = null;
  else held.current ??= rows;
  const before = held.current;
  const shown = useMemo(
    () => (before === null ? { rows, numNew: 0, isChanged: false } : steady(before, rows, idOf)),
    [before, rows],
  );
  if (isHeld) held.current = shown.rows;
  const onRange = useCallback(
    (first: number, last: number) => {
      setAway(first > 0);
      tell(first, last);
    },
    [tell],
  );
  const release = () => {
    held.current = null;
    setRound((before) => before + 1);
    setAway(false);
  };
  const notice = shown.numNew > 0 ? words.newer(shown.numNew) : shown.isChanged ? words.changed : null;
  return { rows: shown.rows, notice, hover, onRange, release, round };
}
