import { Button, NumberInput, Select, Slider, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { Link } from "react-router";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Age } from "../../components/Time";
import { bytes, count, NONE, percent } from "../../format/format";
import { text } from "../../text";
import { endpointsChanged } from "./changed";
import classes from "./Endpoints.module.css";
import { Status } from "./Status";
import { colourOfVersion, type EndpointView, livingVersions, type VersionView } from "./shown";
import { type Split, trafficBody, withShare } from "./split";

const words = text.endpoints;

/** What was deployed, which of it has the traffic, and how to share it anew. */
export function Versions({ endpoint }: { endpoint: EndpointView }) {
  const owns = useOwns(endpoint.owner);
  const may = useMay("endpoints:write") && owns;
  return (
    <>
      {may && <Canary key={endpoint.versions.length} endpoint={endpoint} />}
      <Table endpoint={endpoint} may={may} />
      <Kernels endpoint={endpoint} />
    </>
  );
}

function splitNow(endpoint: EndpointView): Split {
  return Object.fromEntries(
    endpoint.versions.flatMap((version) => (version.traffic > 0 ? [[version.number, version.traffic]] : [])),
  );
}

function Canary({ endpoint }: { endpoint: EndpointView }) {
  const canChange = useCanChange();
  const candidates = endpoint.versions.filter((version) => version.state !== "failed").map((version) => version.number);
  const newest = [...candidates].reverse().find((number) => number !== endpoint.current) ?? candidates.at(-1) ?? 1;
  const now = splitNow(endpoint);
  const [version, setVersion] = useState(newest);
  const [share, setShare] = useState<number | null>(null);
  const percentNow = now[version] ?? 0;
  const chosen = share ?? percentNow;
  const split = withShare({ ...now, [version]: percentNow }, version, chosen);
  const [asked, setAsked] = useState(false);
  const applied = () => {
    setShare(null);
    setAsked(false);
    endpointsChanged();
    notifications.show({ message: words.canary.applied });
  };
  const apply = useChange("post", "/v1/endpoints/{name}/traffic", { onSuccess: applied });
  const rollback = useChange("post", "/v1/endpoints/{name}/rollback", { onSuccess: applied });
  const params = { path: { name: endpoint.name } };
  const back = (
    <Button variant="default" disabled={!canChange} title={words.versions.rollbackHint} onClick={() => setAsked(true)}>
      {words.versions.rollback}
    </Button>
  );
  return (
    <Panel title={words.canary.title} aside={candidates.length > 1 && back}>
      <SplitBar split={split} />
      {candidates.length < 2 ? (
        <Text c="dimmed">{words.canary.one}</Text>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            apply.mutate({ params, body: { traffic: trafficBody(split) } });
          }}
        >
          <Stack gap="sm">
            <div className={classes.canary}>
              <Select
                label={words.canary.version}
                allowDeselect={false}
                data={candidates.map((number) => ({
                  value: String(number),
                  label: `${words.versions.number} ${number}`,
                }))}
                value={String(version)}
                onChange={(value) => {
                  setVersion(Number(value));
                  setShare(null);
                }}
              />
              <Slider
                min={0}
                max={100}
                value={chosen}
                onChange={setShare}
                thumbLabel={words.canary.share(version)}
                label={(value) => `${value} %`}
                disabled={!canChange}
                mb={7}
              />
              <NumberInput
                label={words.canary.share(version)}
                labelProps={{ className: "unseen" }}
                min={0}
                max={100}
                clampBehavior="strict"
                suffix=" %"
                value={chosen}
                onChange={(value) => setShare(typeof value === "number" ? value : null)}
              />
              <Button
                type="submit"
                loading={apply.isPending}
                disabled={!canChange || share === null || share === percentNow}
              >
                {words.canary.apply}
              </Button>
            </div>
            <Text c="dimmed" size="xs">
              {words.canary.hint}
            </Text>
            {endpoint.exchange && <Text className="wrap">{endpoint.exchange}</Text>}
            {apply.error && <Problem error={apply.error} />}
          </Stack>
        </form>
      )}
      <Confirm
        opened={asked}
        onClose={() => setAsked(false)}
        title={words.versions.rollbackTitle(endpoint.name)}
        action={words.versions.rollback}
        onConfirm={() => rollback.mutate({ params, body: {} })}
        pending={rollback.isPending}
        error={rollback.error}
      >
        {words.versions.rollbackBody}
      </Confirm>
    </Panel>
  );
}

function SplitBar({ split }: { split: Split }) {
  const parts = Object.entries(split)
    .map(([number, share]) => ({ number: Number(number), share }))
    .filter(({ share }) => share > 0);
  return (
    <>
      <div className={classes.split} aria-hidden>
        {parts.map(({ number, share }) => (
          <div key={number} style={{ width: `${share}%`, background: `var(--work-${colourOfVersion(number)})` }} />
        ))}
      </div>
      <div className={classes.splitText}>
        {parts.map(({ number, share }) => (
          <span key={number}>
            <span
              style={{ width: 10, height: 10, borderRadius: 3, background: `var(--work-${colourOfVersion(number)})` }}
              aria-hidden
            />
            {words.versions.number} {number} <b>{percent(share / 100)}</b>
          </span>
        ))}
        {parts.length === 0 && <span className="dim">{NONE}</span>}
      </div>
    </>
  );
}

function Table({ endpoint, may }: { endpoint: EndpointView; may: boolean }) {
  const canChange = useCanChange();
  const give = useChange("post", "/v1/endpoints/{name}/rollback", { onSuccess: endpointsChanged });
  const { versions } = words;
  const columns: readonly ShortColumn<VersionView>[] = [
    {
      title: versions.number,
      cell: ({ number }) => (
        <span>
          <b>{number}</b> {number === endpoint.current && <span className="dim">{versions.serves}</span>}
        </span>
      ),
    },
    {
      title: versions.state,
      cell: ({ state, reason }) => (
        <div>
          <Status state={state} />
          {reason && <div className="dim">{reason}</div>}
        </div>
      ),
    },
    {
      title: versions.traffic,
      numeric: true,
      cell: ({ traffic }) => (traffic > 0 ? percent(traffic / 100) : NONE),
    },
    { title: versions.kernels, numeric: true, cell: kernelsOf },
    { title: versions.source, cell: (version) => version.source || version.file },
    { title: versions.runner, tight: true, cell: (version) => version.runner },
    { title: versions.size, numeric: true, cell: (version) => bytes(version.num_bytes) },
    {
      title: versions.job,
      tight: true,
      cell: ({ job_id }) => (job_id === null ? NONE : <Link to={`/jobs/${job_id}`}>{job_id}</Link>),
    },
    { title: versions.by, cell: (version) => version.created_by },
    { title: versions.at, numeric: true, cell: (version) => <Age since={version.created_at} /> },
  ];
  const giving: ShortColumn<VersionView> = {
    title: text.more,
    action: true,
    cell: ({ number, traffic }) =>
      traffic < 100 &&
      endpoint.versions.length > 1 && (
        <Button
          variant="default"
          aria-label={versions.give(number)}
          disabled={!canChange}
          loading={give.isPending && give.variables?.body.number === number}
          onClick={() => give.mutate({ params: { path: { name: endpoint.name } }, body: { number } })}
        >
          {versions.giveShort}
        </Button>
      ),
  };
  return (
    <Panel title={versions.title}>
      {give.error && <Problem error={give.error} />}
      <ShortTable
        label={versions.title}
        columns={may ? [...columns, giving] : columns}
        rows={[...endpoint.versions].reverse()}
        rowId={(version) => String(version.number)}
      />
    </Panel>
  );
}

function kernelsOf(version: VersionView): string {
  return version.num_kernels === 0 && version.wanted === 0 ? NONE : `${version.num_ready} of ${version.wanted}`;
}

type Kernel = VersionView["kernels"][number] & { version: number };

const KERNELS: readonly ShortColumn<Kernel>[] = [
  { title: words.versions.task, tight: true, cell: (kernel) => <span className="mono">{kernel.task_id}</span> },
  { title: words.versions.state, cell: (kernel) => <Status state={kernel.state} /> },
  { title: words.versions.number, cell: (kernel) => kernel.version },
  { title: words.versions.node, cell: (kernel) => kernel.node_id },
  { title: words.versions.slots, cell: (kernel) => kernel.slots.join(", ") },
  { title: words.versions.age, numeric: true, cell: (kernel) => <Age since={kernel.started_at} /> },
];

function Kernels({ endpoint }: { endpoint: EndpointView }) {
  const { versions } = words;
  const rows = livingVersions(endpoint).flatMap((version) =>
    version.kernels.map((kernel): Kernel => ({ ...kernel, version: version.number })),
  );
  return (
    <Panel title={versions.kernelsTitle} aside={<span className="dim">{count(rows.length)}</span>}>
      {rows.length === 0 ? (
        <span className="dim">{versions.noKernels}</span>
      ) : (
        <ShortTable
          label={versions.kernelsTitle}
          columns={KERNELS}
          rows={rows}
          rowId={(kernel) => `${kernel.version} ${kernel.task_id}`}
        />
      )}
    </Panel>
  );
}
