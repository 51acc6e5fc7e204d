import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { cache } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import { keyOf } from "../../api/queries";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { CopyButton } from "../../components/Copy";
import { type Fact, Facts, Figures } from "../../components/Facts";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Sharing } from "../../components/Sharing";
import { Swatch } from "../../components/Swatch";
import { Time } from "../../components/Time";
import { bytes, count, measure, percent } from "../../format/format";
import { text } from "../../text";
import classes from "./Datasets.module.css";
import { type Dataset, insideOf, samplesOf } from "./shown";

const words = text.datasets;

export function Overview({ dataset }: { dataset: Dataset }) {
  const owns = useOwns(dataset.owner);
  const mayChange = useMay("data:write") && owns;
  const { splits = {}, labels = {}, columns = [] } = insideOf(dataset);
  return (
    <>
      {dataset.state === "ready" && <Figures figures={figuresOf(dataset)} />}
      <div className={classes.columns}>
        <div className={classes.stack}>
          {Object.keys(splits).length > 0 && <Splits splits={splits} />}
          {Object.keys(labels).length > 0 && <Labels labels={labels} />}
          {columns.length > 0 && <Columns columns={columns} />}
          <Panel title={words.facts}>
            <Facts facts={factsOf(dataset)} />
          </Panel>
        </div>
        <div className={classes.stack}>
          <Description dataset={dataset} mayChange={mayChange} />
          <Shared dataset={dataset} mayChange={mayChange} />
        </div>
      </div>
    </>
  );
}

/** How much there is, of what. */
function figuresOf(dataset: Dataset): Fact[] {
  const { labels = {}, columns = [], image_size: size, num_files, num_bytes } = insideOf(dataset);
  const samples = samplesOf(dataset);
  const numLabels = Object.keys(labels).length;
  const figures: (Fact | false)[] = [
    samples !== null && { label: words.fact.samples, value: count(samples) },
    { label: words.fact.size, value: bytes(num_bytes) },
    { label: words.fact.files, value: count(num_files) },
    numLabels > 0 && { label: words.fact.classes, value: count(numLabels) },
    columns.length > 0 && { label: words.fact.columns, value: count(columns.length) },
    size != null && { label: words.fact.imageSize, value: size.join(" × ") },
    { label: words.columns.kind, value: words.kinds[dataset.kind] },
  ];
  return figures.filter((figure) => figure !== false);
}

function factsOf(dataset: Dataset): Fact[] {
  const { source } = dataset;
  const { checksum = "", mean = [], deviation = [] } = insideOf(dataset);
  const facts: (Fact | false)[] = [
    dataset.state !== "ready" && { label: words.columns.kind, value: words.kinds[dataset.kind] },
    mean.length > 0 && { label: words.fact.mean, value: mean.map(measure).join(", ") },
    deviation.length > 0 && { label: words.fact.deviation, value: deviation.map(measure).join(", ") },
    checksum !== "" && {
      label: words.fact.checksum,
      value: (
        <Group gap={4} wrap="nowrap">
          <span className="mono wrap">{checksum}</span>
          <CopyButton value={checksum} />
        </Group>
      ),
    },
    source.path != null && { label: words.fact.source, value: source.path },
    (dataset.folder ?? "") !== "" && {
      label: words.fact.folder,
      value: (
        <>
          <span className="mono">{dataset.folder}</span>
          {dataset.in_place && <div className="dim">{words.fact.inPlace}</div>}
        </>
      ),
    },
    { label: words.fact.owner, value: dataset.owner },
    { label: words.fact.created, value: <Time at={dataset.created_at} /> },
    dataset.ready_at != null && { label: words.fact.ready, value: <Time at={dataset.ready_at} /> },
  ];
  return facts.filter((fact) => fact !== false);
}

/** How the samples are dealt out: one bar, and its numbers. */
function Splits({ splits }: { splits: Readonly<Record<string, number>> }) {
  const all = Object.values(splits).reduce((sum, value) => sum + value, 0);
  const parts = Object.entries(splits).map(([name, value], index) => ({ name, value, colour: index }));
  return (
    <Panel title={words.splits}>
      <div className={classes.shares} aria-hidden>
        {parts.map(({ name, value, colour }) => (
          <div key={name} style={{ flex: value, background: `var(--work-${colour})` }} />
        ))}
      </div>
      <div className={classes.legend}>
        {parts.map(({ name, value, colour }) => (
          <div key={name} style={{ display: "contents" }}>
            <Swatch colour={colour} />
            <span>{words.splitNames[name] ?? name}</span>
            <span className="num">{count(value)}</span>
            <span className="num dim">{percent(all === 0 ? null : value / all)}</span>
          </div>
        ))}
      </div>
    </Panel>
  );
}

function Labels({ labels }: { labels: Readonly<Record<string, number>> }) {
  const entries = Object.entries(labels);
  const most = Math.max(1, ...entries.map(([, value]) => value));
  return (
    <Panel title={words.labels}>
      <section className={classes.bars} tabIndex={0} aria-label={words.labels}>
        {entries.map(([label, value]) => (
          <div key={label} style={{ display: "contents" }}>
            <span className="cut" title={label}>
              {label}
            </span>
            <div className={classes.bar} style={{ width: `${(100 * value) / most}%` }} aria-hidden />
            <span className="num">{count(value)}</span>
          </div>
        ))}
      </section>
    </Panel>
  );
}

function Columns({ columns }: { columns: Schemas["Content"]["columns"] }) {
  return (
    <Panel title={words.fact.columns}>
      <section className={classes.table} tabIndex={0} aria-label={words.fact.columns}>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.columnsTable.name}</th>
              <th scope="col">{words.columnsTable.kind}</th>
              <th scope="col" className="num">
                {words.columnsTable.missing}
              </th>
              <th scope="col" className="num">
                {words.columnsTable.minimum}
              </th>
              <th scope="col" className="num">
                {words.columnsTable.maximum}
              </th>
            </tr>
          </thead>
          <tbody>
            {columns.map((column) => (
              <tr key={column.name}>
                <td className="cut" title={column.name}>
                  {column.name}
                </td>
                <td>{words.kindsOfColumn[column.kind] ?? column.kind}</td>
                <td className="num">{count(column.num_missing)}</td>
                <td className="num">{measure(column.minimum)}</td>
                <td className="num">{measure(column.maximum)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  );
}

/** Change a data set as it is shown; its import makes revisions, too. */
function useEdit(dataset: Dataset, onDone: () => void) {
  const path = { name: dataset.name };
  const key = keyOf("/v1/datasets/{name}", { params: { path } });
  const patch = useRevised<Dataset, Schemas["DatasetPatch"], Dataset>({
    read: () => call("get", "/v1/datasets/{name}", { params: { path } }),
    write: (header, body) => call("patch", "/v1/datasets/{name}", { params: { path, header }, body }),
    said: (one) => [one.description, one.shared_with],
    onSuccess: (changed) => {
      cache.setQueryData(key, changed);
      onDone();
    },
    onSettled: () => void cache.invalidateQueries({ queryKey: key }),
  });
  const save = (shown: Dataset, body: Schemas["DatasetPatch"]) => patch.mutate({ shown, body });
  return { patch, save };
}

function Shared({ dataset, mayChange }: { dataset: Dataset; mayChange: boolean }) {
  const { patch, save } = useEdit(dataset, () => undefined);
  return (
    <Sharing
      sharedWith={dataset.shared_with ?? []}
      mayChange={mayChange}
      onSave={(shared_with) => save(dataset, { shared_with })}
      pending={patch.isPending}
      error={patch.error}
    />
  );
}

function Description({ dataset, mayChange }: { dataset: Dataset; mayChange: boolean }) {
  const canChange = useCanChange();
  const [typed, setTyped] = useState<string | null>(null);
  const [shown, setShown] = useState(dataset);
  const { patch, save } = useEdit(dataset, () => setTyped(null));
  const now = dataset.description ?? "";
  return (
    <Panel
      title={words.about}
      aside={
        mayChange &&
        typed === null && (
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => {
              setShown(dataset);
              setTyped(now);
            }}
          >
            {words.edit}
          </Button>
        )
      }
    >
      {typed === null ? (
        <Text size="sm" className="wrap" c={now === "" ? "dimmed" : undefined} style={{ whiteSpace: "pre-wrap" }}>
          {now === "" ? words.noDescription : now}
        </Text>
      ) : (
        <Stack gap="sm">
          <Textarea
            aria-label={words.about}
            autosize
            minRows={2}
            maxRows={16}
            maxLength={10_000}
            value={typed}
            error={patch.error?.of("description")}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
          {patch.error !== null && <Problem error={patch.error} />}
          {patch.error?.status === 412 && (
            <Text size="sm" className="wrap">
              {words.now(now)}
            </Text>
          )}
          <Group gap="xs">
            <Button
              disabled={!canChange || typed === now}
              loading={patch.isPending}
              onClick={() => save(shown, { description: typed })}
            >
              {words.saveDescription}
            </Button>
            <Button variant="default" onClick={() => setTyped(null)}>
              {text.cancel}
            </Button>
          </Group>
        </Stack>
      )}
    </Panel>
  );
}
