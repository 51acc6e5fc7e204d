import { Button, Select, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Age } from "../../components/Time";
import { type Address, useAddress } from "../../components/useAddress";
import { bytes, count, NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Datasets.module.css";
import { type Dataset, DatasetState, samplesOf } from "./shown";
import { Unfinished } from "./Unfinished";

const words = text.datasets;

const COLUMNS: readonly Column<Dataset>[] = [
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
  {
    id: "kind",
    header: words.columns.kind,
    size: 100,
    meta: { sort: "kind" },
    cell: ({ row }) => words.kinds[row.original.kind],
  },
  {
    id: "state",
    header: words.columns.state,
    size: 160,
    meta: { sort: "state" },
    cell: ({ row }) => <DatasetState dataset={row.original} />,
  },
  {
    id: "samples",
    header: words.columns.samples,
    size: 120,
    meta: { numeric: true, sort: "samples" },
    cell: ({ row }) => count(samplesOf(row.original)),
  },
  {
    id: "size",
    header: words.columns.size,
    size: 110,
    meta: { numeric: true, sort: "size" },
    cell: ({ row }) => (row.original.state === "ready" ? bytes(row.original.content?.num_bytes) : NONE),
  },
  {
    id: "owner",
    header: words.columns.owner,
    size: 140,
    meta: { sort: "owner" },
    cell: ({ row }) => <span title={row.original.owner}>{row.original.owner}</span>,
  },
  {
    id: "age",
    header: words.columns.age,
    size: 90,
    meta: { numeric: true, sort: "age" },
    cell: ({ row }) => <Age since={row.original.created_at} />,
  },
];

const SORTS: Readonly<Record<string, (dataset: Dataset) => string | number>> = {
  name: ({ name }) => name.toLowerCase(),
  kind: ({ kind }) => kind,
  state: ({ state }) => state ?? "",
  samples: (dataset) => samplesOf(dataset) ?? -1,
  size: ({ content }) => content?.num_bytes ?? -1,
  owner: ({ owner }) => owner,
  age: ({ created_at }) => -(created_at ?? 0),
};

export default function Datasets() {
  const mayAdd = useMay("data:write");
  const address = useAddress();
  const datasets = useGet("/v1/datasets", { params: { query: { limit: 1000 } } });
  const uploads = useGet("/v1/uploads", {}, { enabled: mayAdd });
  return (
    <Page title={words.title} actions={mayAdd && <AddButton />}>
      {mayAdd && <Unfinished />}
      <Answer query={uploads.isLoading ? { ...datasets, data: undefined } : datasets} rows={6}>
        {({ datasets: all }) =>
          all.length === 0 ? (
            <Empty
              title={words.empty}
              hint={words.emptyHint}
              action={mayAdd && <AddButton />}
              command={mayAdd ? "pliant data add flowers/ --kind images" : undefined}
            />
          ) : (
            <List all={all} address={address} />
          )
        }
      </Answer>
    </Page>
  );
}

function List({ all, address }: { all: readonly Dataset[]; address: Address }) {
  const sort = address.get("sort") ?? "name";
  return (
    <>
      <div className={classes.filters}>
        <TextInput
          type="search"
          aria-label={words.search}
          placeholder={words.search}
          leftSection={<IconSearch size={14} aria-hidden />}
          value={address.get("q") ?? ""}
          onChange={(event) => address.set({ q: event.currentTarget.value })}
          className={classes.search}
        />
        <Select
          aria-label={words.columns.state}
          placeholder={words.anyState}
          clearable
          data={Object.entries(words.states).map(([value, label]) => ({ value, label }))}
          value={address.get("state")}
          onChange={(state) => address.set({ state })}
          w={150}
        />
      </div>
      <DataTable
        label={words.title}
        columns={COLUMNS}
        rows={chosen(all, address.get("q") ?? "", address.get("state"), sort)}
        rowId={({ name }) => name}
        href={({ name }) => `/datasets/${encodeURIComponent(name)}`}
        sort={sort}
        onSort={(next) => address.set({ sort: next === "name" ? null : next })}
        card={(dataset) => <Card dataset={dataset} />}
        empty={<Empty title={words.nothingFits} />}
      />
    </>
  );
}

function chosen(all: readonly Dataset[], query: string, state: string | null, sort: string): Dataset[] {
  const sought = query.trim().toLowerCase();
  const fits = ({ name, owner, description }: Dataset) =>
    [name, owner, description ?? ""].some((one) => one.toLowerCase().includes(sought));
  const keyOfSort = SORTS[sort.replace(/^-/, "")] ?? SORTS.name;
  const sign = sort.startsWith("-") ? -1 : 1;
  return all
    .filter((dataset) => fits(dataset) && (state === null || dataset.state === state))
    .sort((a, b) => {
      const [one, other] = [keyOfSort?.(a) ?? "", keyOfSort?.(b) ?? ""];
      return one < other ? -sign : one > other ? sign : 0;
    });
}

function Card({ dataset }: { dataset: Dataset }) {
  return (
    <div className={classes.card}>
      <strong className="cut">{dataset.name}</strong>
      <DatasetState dataset={dataset} />
      <span className="dim cut">
        {words.kinds[dataset.kind]} · {dataset.owner}
      </span>
      <span className="num dim">{dataset.state === "ready" ? bytes(dataset.content?.num_bytes) : NONE}</span>
    </div>
  );
}

function AddButton() {
  return (
    <Button component={Link} to="/datasets/-new" leftSection={<IconPlus size={16} aria-hidden />}>
      {words.add}
    </Button>
  );
}
