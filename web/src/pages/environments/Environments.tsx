import { Button, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { bytes, NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Environments.module.css";
import { type Environment, EnvironmentState } from "./shown";

const words = text.environments;
/** How far a build is stands in the last line of its log, of which no event tells. */
const BUILDING_MS = 3_000;

const COLUMNS: readonly Column<Environment>[] = [
  {
    id: "name",
    header: words.columns.name,
    meta: { grow: true, sort: "name" },
    cell: ({ row }) => (
      <span className="cut" title={row.original.name}>
        {row.original.name}
      </span>
    ),
  },
  { id: "kind", header: words.columns.kind, size: 170, cell: ({ row }) => words.kinds[row.original.kind] },
  {
    id: "state",
    header: words.columns.state,
    size: 120,
    meta: { sort: "state" },
    cell: ({ row }) => <EnvironmentState environment={row.original} />,
  },
  {
    id: "why",
    header: words.columns.why,
    meta: { grow: true },
    cell: ({ row }) => <span title={row.original.why}>{row.original.why || NONE}</span>,
  },
  {
    id: "size",
    header: words.columns.size,
    size: 110,
    meta: { numeric: true, sort: "size" },
    cell: ({ row }) => (row.original.num_bytes > 0 ? bytes(row.original.num_bytes) : NONE),
  },
  {
    id: "owner",
    header: words.columns.owner,
    size: 140,
    meta: { sort: "owner" },
    cell: ({ row }) => <span title={row.original.owner}>{row.original.owner}</span>,
  },
  {
    id: "used",
    header: words.columns.used,
    size: 110,
    meta: { numeric: true, sort: "used" },
    cell: ({ row }) => <Age since={row.original.last_used_at} />,
  },
];

const SORTS: Readonly<Record<string, (one: Environment) => string | number>> = {
  name: ({ name }) => name.toLowerCase(),
  state: ({ state }) => state,
  size: ({ num_bytes }) => num_bytes,
  owner: ({ owner }) => owner,
  used: ({ last_used_at }) => -(last_used_at ?? 0),
};

export default function Environments() {
  const mayAdd = useMay("models:write");
  const address = useAddress();
  const environments = useGet(
    "/v1/environments",
    { params: { query: { limit: 1000 } } },
    {
      refetchInterval: (page) => (page?.environments.some(({ state }) => state === "building") ? BUILDING_MS : false),
    },
  );
  const sort = address.get("sort") ?? "name";
  const query = address.get("q") ?? "";
  return (
    <Page title={words.title} actions={mayAdd && <AddButton />}>
      <Answer query={environments} rows={6}>
        {({ environments: all }) =>
          all.length === 0 ? (
            <Empty
              title={words.empty}
              hint={words.emptyHint}
              action={mayAdd && <AddButton />}
              command={mayAdd ? "pliant env add nlp --requirements requirements.txt" : undefined}
            />
          ) : (
            <>
              <TextInput
                type="search"
                aria-label={words.search}
                placeholder={words.search}
                leftSection={<IconSearch size={14} aria-hidden />}
                value={query}
                onChange={(event) => address.set({ q: event.currentTarget.value })}
                maw={320}
              />
              <DataTable
                label={words.title}
                columns={COLUMNS}
                rows={chosen(all, query, sort)}
                rowId={({ name }) => name}
                href={({ name }) => `/environments/${encodeURIComponent(name)}`}
                sort={sort}
                onSort={(next) => address.set({ sort: next === "name" ? null : next })}
                card={(environment) => <Card environment={environment} />}
                empty={<Empty title={words.nothingFits} />}
              />
            </>
          )
        }
      </Answer>
    </Page>
  );
}

function chosen(all: readonly Environment[], query: string, sort: string): Environment[] {
  const sought = query.trim().toLowerCase();
  const keyOfSort = SORTS[sort.replace(/^-/, "")] ?? SORTS.name;
  const sign = sort.startsWith("-") ? -1 : 1;
  return all
    .filter(({ name, owner }) => name.toLowerCase().includes(sought) || owner.toLowerCase().includes(sought))
    .sort((a, b) => {
      const [one, other] = [keyOfSort?.(a) ?? "", keyOfSort?.(b) ?? ""];
      return one < other ? -sign : one > other ? sign : 0;
    });
}

function Card({ environment }: { environment: Environment }) {
  return (
    <div className={classes.card}>
      <strong className="cut">{environment.name}</strong>
      <EnvironmentState environment={environment} />
      <span className="dim cut">
        {words.kinds[environment.kind]} · {environment.owner}
      </span>
      <span className="num dim">{environment.num_bytes > 0 ? bytes(environment.num_bytes) : NONE}</span>
    </div>
  );
}

function AddButton() {
  return (
    <Button component={Link} to="/environments/-new" leftSection={<IconPlus size={16} aria-hidden />}>
      {words.add}
    </Button>
  );
}
