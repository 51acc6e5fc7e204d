import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Swatch } from "../../components/Swatch";
import { useAddress } from "../../components/useAddress";
import { duration, measure } from "../../format/format";
import { text } from "../../text";
import { Deploy } from "./Deploy";
import { Status } from "./Status";
import { type EndpointView, type LoadNow, loadOf, readyOf, trafficText } from "./shown";

const words = text.endpoints;
/** No event tells of load: gateways measure it all the time. */
const REFRESH_MS = 3_000;

type Row = EndpointView & { load: LoadNow };

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "name",
    header: words.columns.name,
    size: 220,
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
    id: "versions",
    header: words.columns.versions,
    size: 170,
    cell: ({ row: { original } }) => trafficText(original) || "–",
  },
  numeric("rate", words.columns.rate, ({ load }) => measure(load.rate), 110),
  numeric("p50", words.columns.p50, ({ load }) => duration(load.p50), 90),
  numeric("p99", words.columns.p99, ({ load }) => duration(load.p99), 90),
  numeric("kernels", words.columns.kernels, kernelsText, 120),
  { id: "queue", header: words.columns.queue, size: 120, cell: ({ row }) => row.original.queue },
  { id: "owner", header: words.columns.owner, size: 120, cell: ({ row }) => row.original.owner },
];

function numeric(id: string, header: string, write: (endpoint: Row) => string, size: number): Column<Row> {
  return { id, header, size, meta: { numeric: true }, cell: ({ row: { original } }) => write(original) };
}

function kernelsText(endpoint: EndpointView): string {
  return words.figures.kernelsOf(String(readyOf(endpoint)), String(endpoint.kernel_min), String(endpoint.kernel_max));
}

/** All endpoints, with what they have to do now. */
export default function Endpoints() {
  const address = useAddress();
  const mayDeploy = useMay("endpoints:write");
  const canChange = useCanChange();
  const list = useGet("/v1/endpoints", { params: { query: { limit: 1000 } } }, { refetchInterval: REFRESH_MS });
  const deploy = mayDeploy && (
    <Button leftSection={<IconPlus size={16} />} disabled={!canChange} onClick={() => address.set({ deploy: "job" })}>
      {words.actions.deploy}
    </Button>
  );
  return (
    <Page title={text.nav.endpoints} actions={deploy}>
      <Answer query={list} rows={6}>
        {({ endpoints }) => (
          <DataTable
            label={text.nav.endpoints}
            columns={COLUMNS}
            rows={endpoints.map((endpoint): Row => ({ ...endpoint, load: loadOf(endpoint, list.dataUpdatedAt) }))}
            rowId={(endpoint) => endpoint.name}
            href={(endpoint) => `/endpoints/${endpoint.name}`}
            card={(endpoint) => <Card endpoint={endpoint} />}
            empty={
              <Empty title={words.empty.title} hint={words.empty.hint} command={words.empty.command} action={deploy} />
            }
          />
        )}
      </Answer>
      {address.get("deploy") !== null && <Deploy onClose={() => address.set({ deploy: null, job: null })} />}
    </Page>
  );
}

function Card({ endpoint }: { endpoint: Row }) {
  const { load } = endpoint;
  return (
    <Stack gap={4}>
      <div style={{ display: "flex", alignItems: "center", gap: 8 }}>
        {endpoint.colour != null && <Swatch colour={endpoint.colour} />}
        <strong className="cut" style={{ flex: 1 }} title={endpoint.name}>
          {endpoint.name}
        </strong>
        <Status state={endpoint.state} />
      </div>
      <div className="dim cut">
        {measure(load.rate)} {words.columns.rate.toLowerCase()} · p99 {duration(load.p99)} · {kernelsText(endpoint)}{" "}
        {words.columns.kernels.toLowerCase()}
      </div>
    </Stack>
  );
}
