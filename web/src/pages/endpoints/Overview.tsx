import { SegmentedControl } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { call } from "../../api/client";
import { keyOf } from "../../api/queries";
import { CopyButton } from "../../components/Copy";
import { type Fact, Facts } from "../../components/Facts";
import { LineChart } from "../../components/LineChart";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { count, counted, duration, measure, NONE } from "../../format/format";
import { text } from "../../text";
import classes from "./Endpoints.module.css";
import { type Columns, column, columnsOf } from "./series";
import { colourOfVersion, type EndpointView, livingVersions, mainVersion, readyOf, type VersionView } from "./shown";

const words = text.endpoints;
/** No event tells of load: gateways measure it all the time. */
const REFRESH_MS = 2_000;

/** The load over time against what was asked for, and why it has as many kernels as it does. */
export function Overview({ endpoint }: { endpoint: EndpointView }) {
  return (
    <>
      <Charts endpoint={endpoint} />
      <div className={classes.two}>
        <Why endpoint={endpoint} />
        <About endpoint={endpoint} />
      </div>
    </>
  );
}

function Charts({ endpoint }: { endpoint: EndpointView }) {
  const address = useAddress();
  const range = address.get("range") ?? "3600";
  const living = livingVersions(endpoint).filter((version) => version.job_id !== null);
  const main = mainVersion(endpoint);
  // one version in detail, several beside each other
  const shown = living.length > 1 ? [...living].sort((a, b) => a.number - b.number) : main?.job_id ? [main] : [];
  const path = "/v1/endpoints/{name}/metrics";
  const answers = useQueries({
    queries: shown.map(({ number }) => {
      const init = { params: { path: { name: endpoint.name }, query: { version: number } } };
      return {
        queryKey: keyOf(path, init),
        queryFn: ({ signal }: { signal: AbortSignal }) => call("get", path, init, signal),
        refetchInterval: REFRESH_MS,
      };
    }),
  });
  const noted = shown.map((version, index) => {
    const { data, dataUpdatedAt = 0 } = answers[index] ?? {};
    // a version is measured all the time, and what is as it was is not noted
    const until = living.includes(version) ? dataUpdatedAt / 1000 : null;
    return { version: version.number, points: data?.points ?? [], until };
  });
  const newest = noted.reduce((last, one) => Math.max(last, one.until ?? 0, one.points.at(-1)?.at ?? 0), 0);
  const columns = columnsOf(noted, range === "all" ? null : newest - Number(range));
  const together = {
    data: answers.some(({ data }) => data !== undefined) ? columns : undefined,
    error: answers.find(({ error }) => error !== null)?.error,
    refetch: () => Promise.all(answers.map(({ refetch }) => refetch())),
  };
  const { charts } = words;
  const aside = (
    <SegmentedControl
      aria-label={charts.window}
      value={range}
      onChange={(value) => address.set({ range: value === "3600" ? null : value })}
      data={Object.entries(words.ranges).map(([value, label]) => ({ value, label }))}
    />
  );
  const [only] = shown;
  return (
    <Panel
      title={only === undefined || shown.length > 1 ? words.charts.title : `${words.versions.number} ${only.number}`}
      aside={aside}
    >
      {only === undefined ? (
        <div className={classes.quiet}>{charts.notYet}</div>
      ) : (
        <Answer query={together} height={200}>
          {() =>
            columns.x.length === 0 ? (
              <div className={classes.quiet}>{charts.none}</div>
            ) : (
              <div className={classes.charts}>
                {shown.length === 1 ? (
                  <OfOne columns={columns} version={only.number} objective={endpoint.latency_objective_s} />
                ) : (
                  <OfSeveral
                    columns={columns}
                    versions={shown.map(({ number }) => number)}
                    objective={endpoint.latency_objective_s}
                  />
                )}
              </div>
            )
          }
        </Answer>
      )}
    </Panel>
  );
}

interface ChartsProps {
  columns: Columns;
  objective: number;
}

function OfOne({ columns, version, objective }: ChartsProps & { version: number }) {
  const { charts } = words;
  const line = (name: string, series: string, colour: number) => ({
    name,
    colour,
    values: column(columns, `${version} ${series}`),
  });
  return (
    <>
      <LineChart
        title={charts.requests}
        x={columns.x}
        lines={[
          line(charts.answered, "requests_per_s", 0),
          line(charts.errors, "errors_per_s", 7),
          line(charts.refused, "refused_per_s", 5),
        ]}
        write={measure}
        sync="endpoint"
        gaps
      />
      <LineChart
        title={charts.latency}
        x={columns.x}
        lines={[
          line("p50", "latency_p50_s", 4),
          line("p95", "latency_p95_s", 0),
          line("p99", "latency_p99_s", 3),
          { name: charts.objective, colour: 5, values: columns.x.map(() => objective), dashed: true },
        ]}
        write={duration}
        sync="endpoint"
        gaps
      />
      <LineChart
        title={charts.kernels}
        x={columns.x}
        lines={[
          line(charts.ready, "kernels_ready", 0),
          { ...line(charts.wanted, "kernels_wanted", 1), dashed: true },
          line(charts.queued, "queued", 6),
        ]}
        write={measure}
        sync="endpoint"
        gaps
      />
    </>
  );
}

/** While a new version is tried: a line for each, of one colour in all charts, here and where versions are listed. */
function OfSeveral({ columns, versions, objective }: ChartsProps & { versions: readonly number[] }) {
  const { charts } = words;
  const lines = (series: string) =>
    versions.map((version) => ({
      name: `v${version}`,
      colour: colourOfVersion(version),
      values: column(columns, `${version} ${series}`),
    }));
  const target = { name: charts.objective, colour: 5, values: columns.x.map(() => objective), dashed: true };
  return (
    <>
      <LineChart
        title={charts.requests}
        x={columns.x}
        lines={lines("requests_per_s")}
        write={measure}
        sync="endpoint"
        gaps
      />
      <LineChart
        title={charts.slowest}
        x={columns.x}
        lines={[...lines("latency_p99_s"), target]}
        write={duration}
        sync="endpoint"
        gaps
      />
      <LineChart
        title={charts.errorsPerSecond}
        x={columns.x}
        lines={lines("errors_per_s")}
        write={measure}
        sync="endpoint"
        gaps
      />
    </>
  );
}

function Why({ endpoint }: { endpoint: EndpointView }) {
  const living = livingVersions(endpoint);
  const { why } = words;
  const of = (label: string, version: VersionView) => (living.length > 1 ? `v${version.number}: ${label}` : label);
  const facts: Fact[] = [
    ...(endpoint.reason ? [{ label: why.state, value: endpoint.reason }] : []),
    ...living.flatMap((version) => [
      ...(version.demand ? [{ label: of(why.demand, version), value: version.demand }] : []),
      ...(version.why ? [{ label: of(why.slots, version), value: version.why }] : []),
    ]),
    ...(endpoint.exchange ? [{ label: why.exchange, value: endpoint.exchange }] : []),
  ];
  return (
    <Panel title={why.title(counted(readyOf(endpoint), "kernel"))}>
      {facts.length === 0 ? <span className="dim">{NONE}</span> : <Facts facts={facts} />}
    </Panel>
  );
}

function About({ endpoint }: { endpoint: EndpointView }) {
  const { about } = words;
  const shared = endpoint.shared_with.includes("*") ? about.everybody : endpoint.shared_with.join(", ") || about.nobody;
  return (
    <Panel title={about.title}>
      <Facts
        facts={[
          { label: about.address, value: <Address value={endpoint.http_url} /> },
          { label: about.grpc, value: <Address value={endpoint.grpc_address} /> },
          ...endpoint.gateways.slice(1).map((gateway) => ({
            label: about.also(gateway.machine ?? ""),
            value: <Address value={gateway.http_url} />,
          })),
          { label: about.owner, value: endpoint.owner },
          { label: about.queue, value: endpoint.queue },
          { label: about.priority, value: count(endpoint.priority) },
          { label: about.shared, value: shared },
          { label: about.created, value: <Age since={endpoint.created_at} /> },
          ...(endpoint.description ? [{ label: about.description, value: endpoint.description }] : []),
        ]}
      />
    </Panel>
  );
}

function Address({ value }: { value: string | null }) {
  if (value === null) return <>{NONE}</>;
  return (
    <span className={classes.address}>
      <code className="wrap">{value}</code>
      <CopyButton value={value} />
    </span>
  );
}
