import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Swatch } from "../../components/Swatch";
import { duration, measure } from "../../format/format";
import { text } from "../../text";
import { Progress } from "./Progress";
import { Status } from "./Status";
import { objectiveText, type SearchView } from "./shown";

const words = text.searches;

const COLUMNS: readonly Column<SearchView>[] = [
  {
    id: "name",
    header: words.columns.name,
    size: 240,
    meta: { grow: true },
    cell: ({ row: { original } }) => (
      <>
        {original.colour != null && <Swatch colour={original.colour} />}
        <span className="cut" title={original.name}>
          {original.name}
        </span>
      </>
    ),
  },
  {
    id: "state",
    header: words.columns.state,
    size: 120,
    cell: ({ row: { original } }) => <Status state={original.state} />,
  },
  {
    id: "progress",
    header: words.columns.progress,
    size: 200,
    cell: ({ row: { original } }) => <Progress search={original} />,
  },
  {
    id: "best",
    header: words.columns.best,
    size: 100,
    meta: { numeric: true },
    cell: ({ row: { original } }) => measure(original.best?.results?.[0]),
  },
  { id: "of", header: words.columns.of, size: 160, cell: ({ row: { original } }) => objectiveText(original) },
  {
    id: "ran",
    header: words.columns.ran,
    size: 100,
    meta: { numeric: true },
    cell: ({ row: { original } }) => duration(original.ran_s),
  },
  {
    id: "left",
    header: words.columns.left,
    size: 100,
    meta: { numeric: true },
    cell: ({ row: { original } }) => duration(original.eta_s),
  },
  { id: "owner", header: words.columns.owner, size: 120, cell: ({ row }) => row.original.owner },
];

/** All searches: how far, and the best so far. */
export default function Searches() {
  const mayBegin = useMay("jobs:write");
  const list = useGet("/v1/searches", { params: { query: { limit: 1000 } } });
  const begin = mayBegin && (
    <Button component={Link} to="/searches/new" leftSection={<IconPlus size={16} />}>
      {words.actions.new}
    </Button>
  );
  return (
    <Page title={text.nav.searches} actions={begin}>
      <Answer query={list} rows={6}>
        {({ searches }) => (
          <DataTable
            label={text.nav.searches}
            columns={COLUMNS}
            rows={searches}
            rowId={(search) => search.name}
            href={(search) => `/searches/${search.name}`}
            card={(search) => <Card search={search} />}
            empty={
              <Empty title={words.empty.title} hint={words.empty.hint} command={words.empty.command} action={begin} />
            }
          />
        )}
      </Answer>
    </Page>
  );
}

function Card({ search }: { search: SearchView }) {
  return (
    <Stack gap={4}>
      <div style={{ display: "flex", alignItems: "center", gap: 8 }}>
        {search.colour != null && <Swatch colour={search.colour} />}
        <strong className="cut" style={{ flex: 1 }} title={search.name}>
          {search.name}
        </strong>
        <Status state={search.state} />
      </div>
      <Progress search={search} />
      <div className="dim cut">
        {words.columns.best} {measure(search.best?.results?.[0])} · {objectiveText(search)}
      </div>
    </Stack>
  );
}
