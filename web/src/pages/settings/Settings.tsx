import { Button, Checkbox, Code, Group, SegmentedControl, Stack } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useState } from "react";
import { downloadOf, type Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { CopyButton } from "../../components/Copy";
import { Facts } from "../../components/Facts";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Sides } from "../../components/Sides";
import { Age, Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { Words } from "../../components/Words";
import { text } from "../../text";
import { Cleanup } from "./Cleanup";
import { Retention } from "./Retention";

const words = text.settings;

/** The server itself: what it was started with, what it keeps, a copy of it, and its end. */
export default function Settings() {
  const facts = useGet("/v1/settings", {});
  const mayBackUp = useMay("backup");
  return (
    <Page title={text.nav.settings}>
      <Sides
        left={
          <>
            <Panel title={words.server}>
              <Answer query={facts} rows={4} height={20}>
                {(known) => <About facts={known} />}
              </Answer>
            </Panel>
            {mayBackUp && <Backup />}
          </>
        }
        right={
          <>
            <Retention />
            <Cleanup />
            <Answer query={facts}>{(known) => <Options options={known.options} />}</Answer>
            <Shutdown url={facts.data?.url ?? window.location.origin} />
          </>
        }
      />
    </Page>
  );
}

function About({ facts }: { facts: Schemas["ServerFacts"] }) {
  return (
    <Facts
      facts={[
        { label: words.facts.version, value: facts.version },
        {
          label: words.facts.started,
          value: (
            <>
              <Time at={facts.started_at} /> · <Age since={facts.started_at} /> {words.ago}
            </>
          ),
        },
        { label: words.facts.url, value: facts.url },
        {
          label: words.facts.store,
          value: (
            <>
              {words.stores[facts.store] ?? facts.store}
              <div className="dim">{facts.database}</div>
            </>
          ),
        },
        { label: words.facts.home, value: facts.home },
        { label: words.facts.data, value: facts.data_root },
        ...(facts.copies ? [{ label: words.facts.copies, value: facts.copies }] : []),
      ]}
    />
  );
}

const OPTIONS: ShortColumn<Schemas["ServerOption"]>[] = [
  { title: words.options.columns.name, tight: true, cell: (option) => <span className="mono">{option.name}</span> },
  {
    title: words.options.columns.value,
    cell: (option) =>
      option.value === "" ? (
        <span className="dim">{words.options.empty}</span>
      ) : (
        <span className="mono">{option.value}</span>
      ),
  },
  { title: words.options.columns.source, tight: true, cell: (option) => words.options.sources[option.source] },
];

function Options({ options }: { options: Schemas["ServerFacts"]["options"] }) {
  const address = useAddress();
  const all = address.get("options") === "all";
  const shown = options.filter((option) => all || option.source !== "default");
  return (
    <Panel
      title={words.options.title}
      aside={
        <SegmentedControl
          aria-label={words.options.which}
          value={all ? "all" : "given"}
          onChange={(value) => address.set({ options: value === "all" ? value : null })}
          data={[
            { value: "given", label: words.options.given },
            { value: "all", label: words.options.all },
          ]}
        />
      }
    >
      {shown.length === 0 ? (
        <span className="dim">{words.options.none}</span>
      ) : (
        <ShortTable label={words.options.title} columns={OPTIONS} rows={shown} rowId={(option) => option.name} />
      )}
    </Panel>
  );
}

function Backup() {
  const canChange = useCanChange();
  const [results, setResults] = useState(true);
  const [data, setData] = useState(true);
  const command = `${words.backup.command}${results ? "" : " --no-results"}${data ? "" : " --no-data"}`;
  const href = downloadOf("/v1/backup", { results: String(results), data: String(data) });
  return (
    <Panel title={words.backup.title}>
      <Stack gap="sm">
        <div className="dim">{words.backup.hint}</div>
        <Checkbox
          label={words.backup.results}
          checked={results}
          onChange={(event) => setResults(event.currentTarget.checked)}
        />
        <Checkbox label={words.backup.data} checked={data} onChange={(event) => setData(event.currentTarget.checked)} />
        <div>
          <Button
            variant="default"
            leftSection={<IconDownload size={16} />}
            {...(canChange ? { component: "a" as const, href, download: true } : { disabled: true })}
          >
            {words.backup.download}
          </Button>
        </div>
        <Group gap="xs" wrap="nowrap">
          <Code className="cut" title={command}>
            {command}
          </Code>
          <CopyButton value={command} />
        </Group>
      </Stack>
    </Panel>
  );
}

function Shutdown({ url }: { url: string }) {
  const canChange = useCanChange();
  const [asking, setAsking] = useState(false);
  const end = useChange("post", "/v1/shutdown", { onSuccess: () => setAsking(false) });
  return (
    <Panel title={words.shutdown.title}>
      <Stack gap="sm">
        <div className="dim">{words.shutdown.hint}</div>
        <div>
          <Button variant="outline" color="red" disabled={!canChange || end.isSuccess} onClick={() => setAsking(true)}>
            {words.shutdown.action}
          </Button>
        </div>
        {end.isSuccess && (
          <strong role="status">
            <Words of={words.shutdown.ends} />
          </strong>
        )}
      </Stack>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={words.shutdown.ask(url)}
        action={words.shutdown.do}
        pending={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate({})}
      >
        <Words of={words.shutdown.what} />
      </Confirm>
    </Panel>
  );
}
