import { SegmentedControl, Select, Text } from "@mantine/core";
import { useGet } from "../api/queries";
import { Answer } from "../components/Notice";
import { Panel } from "../components/Panel";
import { ShortTable } from "../components/ShortTable";
import { useAddress } from "../components/useAddress";
import { count, measure } from "../format/format";
import { text } from "../text";
import classes from "./Histograms.module.css";
import { Ridges } from "./Ridges";
import { firstLayer, type Histogram, KINDS, kindOf, layersOf, numValues, quantile, sameLayer } from "./ridges";

const words = text.histograms;
const LIVE_MS = 5000;

/** How the weights, the gradients and whatever a script logs lie, step by step; which of them stands in the address. */
export function HistogramPanel({ jobId, live }: { jobId: string; live: boolean }) {
  const address = useAddress();
  const params = { path: { job_id: jobId } };
  const names = useGet("/v1/jobs/{job_id}/histograms", { params }, { refetchInterval: live && LIVE_MS, retry: false });
  const series = names.data?.series ?? [];
  const layers = layersOf(series.map((one) => one.name));
  const kinds = KINDS.filter((kind) => layers[kind].length > 0);
  const asked = address.get("histogram");
  const name = series.find((one) => one.name === asked)?.name ?? firstLayer(layers);
  const kind = name === null ? null : kindOf(name);
  const asTable = address.get("histograms") === "table";
  return (
    <Panel
      title={words.title}
      aside={
        name !== null &&
        kind !== null && (
          <div className={classes.tools}>
            {kinds.length > 1 && (
              <SegmentedControl
                aria-label={words.kind}
                data={kinds.map((one) => ({ value: one, label: words.kinds[one] ?? one }))}
                value={kind}
                onChange={(value) => {
                  const chosen = kinds.find((one) => one === value);
                  if (chosen !== undefined) address.set({ histogram: sameLayer(layers[chosen], name) });
                }}
              />
            )}
            <Select
              className={classes.layer}
              aria-label={words.layer}
              data={layers[kind].map((layer) => ({ value: layer.name, label: layer.title }))}
              value={name}
              onChange={(value) => address.set({ histogram: value })}
              allowDeselect={false}
              searchable
            />
            <SegmentedControl
              aria-label={words.view}
              data={[
                { value: "chart", label: words.chart },
                { value: "table", label: words.table },
              ]}
              value={asTable ? "table" : "chart"}
              onChange={(value) => address.set({ histograms: value === "table" ? "table" : null })}
            />
          </div>
        )
      }
    >
      <Answer query={names} rows={1} height={60}>
        {() =>
          name === null ? (
            <Text c="dimmed">
              {live ? words.noneYet : words.none} {words.how}
            </Text>
          ) : (
            <One key={name} jobId={jobId} name={name} live={live} asTable={asTable} />
          )
        }
      </Answer>
    </Panel>
  );
}

interface OneProps {
  jobId: string;
  name: string;
  live: boolean;
  asTable: boolean;
}

function One({ jobId, name, live, asTable }: OneProps) {
  const params = { path: { job_id: jobId, name } };
  const page = useGet(
    "/v1/jobs/{job_id}/histograms/{name}",
    { params },
    { refetchInterval: live && LIVE_MS, retry: false },
  );
  return (
    <Answer query={page} rows={1} height={300}>
      {({ histograms }) =>
        asTable ? <Rows name={name} histograms={histograms} /> : <Ridges name={name} histograms={histograms} />
      }
    </Answer>
  );
}

const HEADS = words.columns;

/** The same as the picture in rows, the newest first. */
function Rows({ name, histograms }: { name: string; histograms: readonly Histogram[] }) {
  const ofValues = (title: string, value: (one: Histogram) => number | null) => ({
    title,
    numeric: true,
    cell: (one: Histogram) => measure(value(one)),
  });
  const some = (one: Histogram, value: number) => (one.counts.length === 0 ? null : value);
  return (
    <div className={classes.rows}>
      <ShortTable
        label={`${words.title}: ${name}`}
        rows={[...histograms].reverse()}
        rowId={(one) => String(one.step)}
        columns={[
          { title: HEADS.step, numeric: true, cell: (one) => count(one.step) },
          ofValues(HEADS.lowest, (one) => some(one, one.lowest)),
          ofValues(HEADS.low, (one) => quantile(one, 0.05)),
          ofValues(HEADS.median, (one) => quantile(one, 0.5)),
          ofValues(HEADS.high, (one) => quantile(one, 0.95)),
          ofValues(HEADS.highest, (one) => some(one, one.highest)),
          { title: HEADS.values, numeric: true, cell: (one) => count(numValues(one)) },
          { title: HEADS.nan, numeric: true, cell: (one) => count(one.num_nan) },
          { title: HEADS.infinite, numeric: true, cell: (one) => count(one.num_infinite) },
        ]}
      />
    </div>
  );
}
