import { Button, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { cache } from "../../api/cache";
import { keyOf, useChange, useGet, useText } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { CopyButton } from "../../components/Copy";
import { Crumbs } from "../../components/Crumbs";
import { type Fact, Facts } from "../../components/Facts";
import { LinkTabs } from "../../components/LinkTabs";
import { Answer, Reason } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Sharing } from "../../components/Sharing";
import { Snippet } from "../../components/Snippet";
import { Time } from "../../components/Time";
import { bytes } from "../../format/format";
import { text } from "../../text";
import classes from "./Environments.module.css";
import { type Environment, EnvironmentState } from "./shown";

const words = text.environments;
/** How far a build is stands in its log, of which no event tells. */
const BUILDING_MS = 2_000;

export default function EnvironmentPage() {
  const { name = "", tab = "overview" } = useParams();
  const environment = useGet(
    "/v1/environments/{name}",
    { params: { path: { name } } },
    { refetchInterval: (data) => (data?.state === "building" ? BUILDING_MS : false) },
  );
  const at = `/environments/${encodeURIComponent(name)}`;
  return (
    <Page
      title={name}
      heading={
        <Crumbs above={[{ to: "/environments", title: words.title }]} name={name}>
          {environment.data && <EnvironmentState environment={environment.data} />}
        </Crumbs>
      }
      actions={environment.data && <Actions environment={environment.data} />}
    >
      <LinkTabs
        label={words.tabsLabel}
        tabs={[
          { to: at, title: words.tabs.overview, exact: true },
          { to: `${at}/log`, title: words.tabs.log },
        ]}
      />
      <Answer query={environment} rows={3} height={120}>
        {(data) => (
          <>
            {data.why !== "" && <Reason failed={data.state === "failed"}>{data.why}</Reason>}
            {tab === "log" ? (
              <Log name={name} isBuilding={data.state === "building"} />
            ) : (
              <Overview environment={data} />
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

function Overview({ environment }: { environment: Environment }) {
  const owns = useOwns(environment.owner);
  const mayChange = useMay("models:write") && owns;
  const { name, revision } = environment;
  const key = keyOf("/v1/environments/{name}", { params: { path: { name } } });
  const share = useChange("put", "/v1/environments/{name}/shares", {
    onSuccess: (changed) => cache.setQueryData(key, changed),
    onError: (error) => {
      if (error.status === 412) void cache.invalidateQueries({ queryKey: key });
    },
  });
  return (
    <div className={classes.columns}>
      <div className={classes.stack}>
        {environment.output.length > 0 && (
          <Panel title={words.output}>
            <Snippet label={words.output} code={environment.output.join("\n")} />
          </Panel>
        )}
        <Panel title={words.kinds[environment.kind] ?? environment.kind}>
          <Snippet label={words.kinds[environment.kind] ?? environment.kind} code={environment.source.trim()} />
        </Panel>
        <Panel title={words.facts}>
          <Facts facts={factsOf(environment)} />
        </Panel>
      </div>
      <Sharing
        sharedWith={environment.shared_with}
        mayChange={mayChange}
        onSave={(shared_with) =>
          share.mutate({ params: { path: { name }, header: { "if-match": `"${revision}"` } }, body: { shared_with } })
        }
        pending={share.isPending}
        error={share.error}
      />
    </div>
  );
}

function factsOf(environment: Environment): Fact[] {
  const { fact } = words;
  const facts: (Fact | false)[] = [
    environment.python !== "" && { label: fact.python, value: <span className="mono">{environment.python}</span> },
    environment.builder !== "" && { label: fact.builder, value: environment.builder },
    environment.num_bytes > 0 && { label: fact.size, value: bytes(environment.num_bytes) },
    environment.built_at !== null && { label: fact.built, value: <Time at={environment.built_at} /> },
    environment.last_used_at !== null && { label: fact.used, value: <Time at={environment.last_used_at} /> },
    { label: fact.created, value: <Time at={environment.created_at} /> },
    { label: fact.owner, value: environment.owner },
    environment.key !== "" && { label: fact.key, value: <span className="mono">{environment.key}</span> },
  ];
  return facts.filter((one) => one !== false);
}

/** What the builder has printed, as it prints it; its end stays in sight unless one has scrolled up. */
function Log({ name, isBuilding }: { name: string; isBuilding: boolean }) {
  const log = useText(
    "/v1/environments/{name}/log",
    { params: { path: { name } } },
    `/v1/environments/${encodeURIComponent(name)}/log`,
    { refetchInterval: isBuilding ? BUILDING_MS : false },
  );
  const { refetch } = log;
  useEffect(() => {
    if (!isBuilding) void refetch(); // the last lines
  }, [isBuilding, refetch]);
  return (
    <Answer query={log} rows={4}>
      {(printed) => (printed === "" ? <Text c="dimmed">{words.noLog}</Text> : <Lines printed={printed} />)}
    </Answer>
  );
}

function Lines({ printed }: { printed: string }) {
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines are what moves it
  useEffect(() => {
    if (atEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [printed]);
  return (
    <div className={classes.log}>
      <section
        ref={box}
        className={classes.lines}
        tabIndex={0}
        aria-label={words.log}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        <pre>{printed}</pre>
      </section>
      <div className={classes.copy}>
        <CopyButton value={printed} label={words.copyLog} />
      </div>
    </div>
  );
}

function Actions({ environment }: { environment: Environment }) {
  const owns = useOwns(environment.owner);
  const mayWrite = useMay("models:write");
  const maySubmit = useMay("jobs:write");
  const canChange = useCanChange();
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"" | "rebuild" | "remove">("");
  const { name, revision } = environment;
  const path = { name };
  const key = keyOf("/v1/environments/{name}", { params: { path } });
  const rebuild = useChange("post", "/v1/environments/{name}/rebuild", {
    onSuccess: (changed) => {
      cache.setQueryData(key, changed);
      setAsking("");
      navigate(`/environments/${encodeURIComponent(name)}/log`);
    },
  });
  const remove = useChange("delete", "/v1/environments/{name}", {
    onSuccess: () => {
      navigate("/environments");
      cache.removeQueries({ queryKey: key });
      void cache.invalidateQueries({ queryKey: ["get", "/v1/environments"] });
    },
  });
  return (
    <>
      {maySubmit && environment.state !== "failed" && (
        <Button component={Link} to={`/submit?environment=${encodeURIComponent(name)}`} variant="default">
          {words.use}
        </Button>
      )}
      {owns && mayWrite && (
        <>
          <Button
            variant="default"
            disabled={!canChange || environment.state === "building"}
            onClick={() => setAsking("rebuild")}
          >
            {words.rebuild}
          </Button>
          <Button variant="default" disabled={!canChange} onClick={() => setAsking("remove")}>
            {words.remove}
          </Button>
        </>
      )}
      <Confirm
        opened={asking === "rebuild"}
        onClose={() => setAsking("")}
        title={words.rebuildTitle(name)}
        action={words.rebuildAction}
        pending={rebuild.isPending}
        error={rebuild.error}
        onConfirm={() => rebuild.mutate({ params: { path } })}
      >
        {words.rebuildText}
      </Confirm>
      <Confirm
        opened={asking === "remove"}
        onClose={() => setAsking("")}
        title={words.removeTitle(name)}
        action={words.removeAction}
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ params: { path, header: { "if-match": `"${revision}"` } } })}
      >
        {words.removeText}
      </Confirm>
    </>
  );
}
