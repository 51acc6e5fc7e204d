import { Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { cache } from "../../api/cache";
import { keyOf, useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { LinkTabs } from "../../components/LinkTabs";
import { Answer, Reason } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Snippet } from "../../components/Snippet";
import { bytes, count, percent } from "../../format/format";
import { text } from "../../text";
import classes from "./Datasets.module.css";
import { Overview } from "./Overview";
import { Preview } from "./Preview";
import { type Dataset, DatasetState, shareOf } from "./shown";

const words = text.datasets;

export default function DatasetPage() {
  const { name = "", tab = "overview" } = useParams();
  const dataset = useGet("/v1/datasets/{name}", { params: { path: { name } } });
  const at = `/datasets/${encodeURIComponent(name)}`;
  return (
    <Page
      title={name}
      heading={
        <Crumbs above={[{ to: "/datasets", title: words.title }]} name={name}>
          {dataset.data && <DatasetState dataset={dataset.data} />}
        </Crumbs>
      }
      actions={dataset.data && <Actions dataset={dataset.data} />}
    >
      <LinkTabs
        label={words.tabsLabel}
        tabs={[
          { to: at, title: words.tabs.overview, exact: true },
          { to: `${at}/preview`, title: words.tabs.preview },
          { to: `${at}/use`, title: words.tabs.use },
        ]}
      />
      <Answer query={dataset} rows={3} height={120}>
        {(data) => (
          <>
            {data.reason !== undefined && data.reason !== "" && (
              <Reason failed={data.state === "failed"}>{data.reason}</Reason>
            )}
            {data.state === "importing" && <Importing dataset={data} />}
            {tab === "preview" ? (
              <Preview name={name} state={data.state} />
            ) : tab === "use" ? (
              <Use dataset={data} />
            ) : (
              <Overview dataset={data} />
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

/** How far an import is. */
function Importing({ dataset }: { dataset: Dataset }) {
  const progress = dataset.progress;
  const share = shareOf(dataset);
  const done = progress?.files_total
    ? words.filesDone(count(progress.files_done), count(progress.files_total))
    : progress?.files_done
      ? words.files(count(progress.files_done))
      : progress?.bytes_total
        ? words.progress(bytes(progress.bytes_done), bytes(progress.bytes_total), percent(share))
        : "";
  return (
    <Panel title={words.importing}>
      <Stack gap="xs">
        <Progress value={100 * (share ?? 0)} aria-label={words.importing} />
        <Group justify="space-between">
          <Text size="sm" role="status">
            {words.phase(progress?.phase ?? words.states.importing ?? "")}
          </Text>
          <Text size="sm" className="num">
            {done}
          </Text>
        </Group>
      </Stack>
    </Panel>
  );
}

function Actions({ dataset }: { dataset: Dataset }) {
  const owns = useOwns(dataset.owner);
  const mayWrite = useMay("data:write");
  const maySubmit = useMay("jobs:write");
  const canChange = useCanChange();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"" | "stop" | "remove">("");
  const { name } = dataset;
  const path = { name };
  const stop = useChange("post", "/v1/datasets/{name}/stop", {
    onSuccess: (stopped) => {
      cache.setQueryData(keyOf("/v1/datasets/{name}", { params: { path } }), stopped);
      setAsking("");
    },
  });
  const remove = useChange("delete", "/v1/datasets/{name}", {
    onSuccess: () => {
      navigate("/datasets");
      cache.removeQueries({ queryKey: keyOf("/v1/datasets/{name}", { params: { path } }) });
      void cache.invalidateQueries({ queryKey: ["get", "/v1/datasets"] });
    },
  });
  return (
    <>
      {maySubmit && dataset.state === "ready" && (
        <Button component={Link} to={`/submit?dataset=${encodeURIComponent(name)}`} variant="default">
          {words.use.submit}
        </Button>
      )}
      {owns && mayWrite && dataset.state === "importing" && (
        <Button variant="default" disabled={!canChange} onClick={() => setAsking("stop")}>
          {words.stop}
        </Button>
      )}
      {owns && mayWrite && (
        <Button variant="default" disabled={!canChange} onClick={() => setAsking("remove")}>
          {words.remove}
        </Button>
      )}
      <Confirm
        opened={asking === "stop"}
        onClose={() => setAsking("")}
        title={words.stopTitle(name)}
        action={words.stopAction}
        pending={stop.isPending}
        error={stop.error}
        onConfirm={() => stop.mutate({ params: { path } })}
      >
        {words.stopText}
      </Confirm>
      <Confirm
        opened={asking === "remove"}
        onClose={() => setAsking("")}
        title={words.removeTitle(name)}
        action={words.removeAction}
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ params: { path, header: { "if-match": `"${dataset.revision ?? 0}"` } } })}
      >
        {dataset.in_place ? words.removeInPlace : words.removeText}
      </Confirm>
    </>
  );
}

/** How a job uses it. */
function Use({ dataset }: { dataset: Dataset }) {
  const variables: readonly (readonly [string, string])[] = [
    ["PLIANT_DATASET", words.use.name],
    ["DATA_DIR", words.use.folder],
    ["TRAIN_DATA_DIR", words.use.part],
    ["VALIDATION_DATA_DIR", words.use.part],
    ["TEST_DATA_DIR", words.use.part],
  ];
  return (
    <div className={classes.form}>
      <Panel title={words.use.job}>
        <Snippet label={words.use.job} code={`pliant submit train.py --dataset ${dataset.name}`} />
      </Panel>
      <Panel title={words.use.variables}>
        <dl className={classes.bars}>
          {variables.map(([variable, said]) => (
            <div key={variable} style={{ display: "contents" }}>
              <dt className="mono">{variable}</dt>
              <dd style={{ margin: 0, gridColumn: "2 / -1" }}>{said}</dd>
            </div>
          ))}
        </dl>
      </Panel>
    </div>
  );
}
