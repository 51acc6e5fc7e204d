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
                mb={10}
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
  const newestFirst = [...endpoint.versions].reverse();
  return (
    <Panel title={versions.title}>
      {give.error && <Problem error={give.error} />}
      <section className={classes.scroll} tabIndex={0} aria-label={versions.title}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">{versions.number}</th>
              <th scope="col">{versions.state}</th>
              <th scope="col" className="num">
                {versions.traffic}
              </th>
              <th scope="col" className="num">
                {versions.kernels}
              </th>
              <th scope="col">{versions.source}</th>
              <th scope="col">{versions.runner}</th>
              <th scope="col" className="num">
                {versions.size}
              </th>
              <th scope="col">{versions.job}</th>
              <th scope="col">{versions.by}</th>
              <th scope="col" className="num">
                {versions.at}
              </th>
              {may && <th scope="col" aria-label={text.more} />}
            </tr>
          </thead>
          <tbody>
            {newestFirst.map((version) => (
              <tr key={version.number}>
                <td>
                  <b>{version.number}</b>{" "}
                  {version.number === endpoint.current && <span className="dim">{versions.serves}</span>}
                </td>
                <td style={{ minWidth: 120 }}>
                  <Status state={version.state} />
                  {version.reason && (
                    <Text size="xs" c="dimmed" className="wrap">
                      {version.reason}
                    </Text>
                  )}
                </td>
                <td className="num">{version.traffic > 0 ? percent(version.traffic / 100) : NONE}</td>
                <td className="num">{kernelsOf(version)}</td>
                <td style={{ minWidth: 140 }} className="wrap">
                  {version.source || version.file}
                </td>
                <td>{version.runner}</td>
                <td className="num">{bytes(version.num_bytes)}</td>
                <td>{version.job_id === null ? NONE : <Link to={`/jobs/${version.job_id}`}>{version.job_id}</Link>}</td>
                <td className="wrap">{version.created_by}</td>
                <td className="num">
                  <Age since={version.created_at} />
                </td>
                {may && (
                  <td>
                    {version.traffic < 100 && endpoint.versions.length > 1 && (
                      <Button
                        variant="default"
                        size="compact-xs"
                        aria-label={versions.give(version.number)}
                        disabled={!canChange}
                        loading={give.isPending && give.variables?.body.number === version.number}
                        onClick={() =>
                          give.mutate({ params: { path: { name: endpoint.name } }, body: { number: version.number } })
                        }
                      >
                        {versions.giveShort}
                      </Button>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  );
}

function kernelsOf(version: VersionView): string {
  return version.num_kernels === 0 && version.wanted === 0 ? NONE : `${version.num_ready} of ${version.wanted}`;
}

function Kernels({ endpoint }: { endpoint: EndpointView }) {
  const { versions } = words;
  const rows = livingVersions(endpoint).flatMap((version) => version.kernels.map((kernel) => ({ version, kernel })));
  return (
    <Panel title={versions.kernelsTitle} aside={<span className="dim">{count(rows.length)}</span>}>
      {rows.length === 0 ? (
        <Text c="dimmed">{versions.noKernels}</Text>
      ) : (
        <section className={classes.scroll} tabIndex={0} aria-label={versions.kernelsTitle}>
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">{versions.task}</th>
                <th scope="col">{versions.state}</th>
                <th scope="col">{versions.number}</th>
                <th scope="col">{versions.node}</th>
                <th scope="col">{versions.slots}</th>
                <th scope="col" className="num">
                  {versions.age}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ version, kernel }) => (
                <tr key={kernel.task_id}>
                  <td className="mono">{kernel.task_id}</td>
                  <td>
                    <Status state={kernel.state} />
                  </td>
                  <td>{version.number}</td>
                  <td>{kernel.node_id}</td>
                  <td>{kernel.slots.join(", ")}</td>
                  <td className="num">
                    <Age since={kernel.started_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Panel>
  );
}
