import { Button, Input, SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { call, type Schemas } from "../../api/client";
import { keyOf } from "../../api/queries";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { State } from "../../components/State";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { count, NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Audit.module.css";
import { drawn, type Filter, filterOf, OUTCOMES, outcomeOf } from "./outcome";

type Entry = Schemas["AuditEntry"];
const words = text.audit;
const PAGE = 200;

const COLUMNS: readonly Column<Entry>[] = [
  { id: "at", header: words.columns.at, size: 130, cell: ({ row }) => <Time at={row.original.at} /> },
  { id: "who", header: words.columns.who, size: 150, cell: ({ row }) => <Who entry={row.original} /> },
  {
    id: "action",
    header: words.columns.action,
    meta: { grow: true },
    cell: ({ row }) => <span title={row.original.action}>{row.original.action}</span>,
  },
  {
    id: "target",
    header: words.columns.target,
    size: 180,
    cell: ({ row }) => <span title={row.original.target}>{row.original.target || NONE}</span>,
  },
  { id: "outcome", header: words.columns.outcome, size: 160, cell: ({ row }) => <CameOf entry={row.original} /> },
  { id: "address", header: words.columns.address, size: 150, cell: ({ row }) => row.original.address || NONE },
];

/** Who did or tried what. */
export default function Audit() {
  const address = useAddress();
  const filter = filterOf(address.get);
  const log = useLog(filter);
  const filtered = filter.who !== null || filter.q !== null || filter.outcome !== null;
  return (
    <Page
      title={text.nav.audit}
      actions={
        <Button variant="default" leftSection={<IconRefresh size={16} />} loading={log.renewing} onClick={log.renew}>
          {words.refresh}
        </Button>
      }
    >
      <search className={classes.filters}>
        <FilterField name="q" label={words.what} type="search" />
        <FilterField name="who" label={words.who} type="text" />
        <div className={classes.outcome}>
          <Input.Label size="xs" component="div" id="outcome">
            {words.outcome}
          </Input.Label>
          <SegmentedControl
            fullWidth
            aria-labelledby="outcome"
            value={filter.outcome ?? "all"}
            onChange={(value) => address.set({ outcome: value === "all" ? null : value })}
            data={["all", ...OUTCOMES].map((value) => ({ value, label: words.outcomes[value] ?? value }))}
          />
        </div>
      </search>
      <Answer query={log} rows={8}>
        {(entries) => (
          <>
            <DataTable
              label={words.list}
              columns={COLUMNS}
              rows={entries}
              rowId={(entry) => String(entry.seq)}
              onRange={log.onRange}
              maxHeight="calc(100dvh - 280px)"
              card={(entry) => <Card entry={entry} />}
              empty={
                <Empty
                  title={filtered ? words.none : words.first}
                  hint={filtered ? words.noneHint : words.firstHint}
                  command="pliant audit"
                />
              }
            />
            {entries.length > 0 && (
              <div className="dim" role="status">
                {log.more
                  ? words.more(count(entries.length))
                  : words.loaded(count(entries.length), entries.length === 1)}
              </div>
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

function Who({ entry }: { entry: Entry }) {
  return entry.who === "" ? <span className="dim">{words.nobody}</span> : <span title={entry.who}>{entry.who}</span>;
}

function CameOf({ entry }: { entry: Entry }) {
  const outcome = outcomeOf(entry.status);
  return (
    <span className={classes.outcomeOf}>
      <State {...drawn(outcome)} word={words.outcomes[outcome] ?? outcome} />
      <span className={classes.number}>{entry.status}</span>
    </span>
  );
}

function Card({ entry }: { entry: Entry }) {
  return (
    <div className={classes.card}>
      <b className="cut" title={entry.action}>
        {entry.action} {entry.target}
      </b>
      <span className="cut">
        <Who entry={entry} /> · {entry.address || NONE}
      </span>
      <span>
        <CameOf entry={entry} /> · <Time at={entry.at} />
      </span>
    </div>
  );
}

/** A field that filters a moment after one has typed; what it holds stands in the address. */
function FilterField({ name, label, type }: { name: "q" | "who"; label: string; type: "search" | "text" }) {
  const address = useAddress();
  const [typed, setTyped] = useState(address.get(name) ?? "");
  const set = useDebouncedCallback((value: string) => address.set({ [name]: value }), 250);
  return (
    <TextInput
      type={type}
      label={label}
      maxLength={100}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        set(event.currentTarget.value);
      }}
    />
  );
}

/** The log, newest first; older entries are asked for when one comes near the last that is there. */
function useLog(filter: Filter) {
  const asked = { ...filter, limit: PAGE };
  const key = keyOf("/v1/audit", { params: { query: asked } });
  const cache = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      call("get", "/v1/audit", { params: { query: { ...asked, before: pageParam } } }, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    select: (data) => data.pages.flatMap((page) => page.entries) as readonly Entry[],
    staleTime: 0,
  });
  const { data, hasNextPage, isFetching, fetchNextPage } = query;
  const number = data?.length ?? 0;
  const onRange = useCallback(
    (_: number, last: number) => {
      if (hasNextPage && !isFetching && last > number - 50) void fetchNextPage();
    },
    [hasNextPage, isFetching, fetchNextPage, number],
  );
  return {
    data,
    error: query.error,
    refetch: query.refetch,
    more: hasNextPage,
    onRange,
    renewing: query.isRefetching,
    renew: () => void cache.resetQueries({ queryKey: key, exact: true }),
  };
}
