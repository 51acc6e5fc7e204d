import { ActionIcon, Button, Menu } from "@mantine/core";
import { IconDots, IconPlayerPlay, IconPlayerStop, IconRocket, IconShare, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";
import { useChange, useGet } from "../../api/queries";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { Figures } from "../../components/Facts";
import { LinkTabs } from "../../components/LinkTabs";
import { Answer, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { ShareDialog } from "../../components/ShareDialog";
import { useAddress } from "../../components/useAddress";
import { count, duration, measure, NONE, percent } from "../../format/format";
import { text } from "../../text";
import { endpointsChanged } from "./changed";
import { changingOf } from "./changing";
import { Deploy } from "./Deploy";
import { Logs } from "./Logs";
import { Overview } from "./Overview";
import { Profile } from "./Profile";
import { Status } from "./Status";
import { type EndpointView, loadOf, trafficText } from "./shown";
import { Test } from "./Test";
import { Versions } from "./Versions";

const words = text.endpoints;
/** No event tells of load: gateways measure it all the time. */
const REFRESH_MS = 2_000;
const TABS = ["overview", "versions", "profile", "test", "logs"] as const;

/** An endpoint: whether it is well, what serves, how, and a form to ask it. */
export default function Endpoint() {
  const { name = "", tab } = useParams();
  const endpoint = useGet("/v1/endpoints/{name}", { params: { path: { name } } }, { refetchInterval: REFRESH_MS });
  return (
    <Page
      title={name}
      heading={
        <Crumbs above={[{ to: "/endpoints", title: text.nav.endpoints }]} name={name} colour={endpoint.data?.colour}>
          {endpoint.data && <Status state={endpoint.data.state} />}
          {endpoint.data && <span className="dim">{trafficText(endpoint.data)}</span>}
        </Crumbs>
      }
      actions={endpoint.data && <Actions endpoint={endpoint.data} />}
    >
      <Answer query={endpoint} rows={5}>
        {(found) => (
          <>
            <Head endpoint={found} at={endpoint.dataUpdatedAt} />
            <LinkTabs
              label={words.tabsLabel}
              tabs={TABS.map((one) => ({
                to: one === "overview" ? `/endpoints/${name}` : `/endpoints/${name}/${one}`,
                title: words.tabs[one],
                exact: one === "overview",
                ...(one === "versions" && { count: found.versions.length }),
              }))}
            />
            <Part endpoint={found} tab={tab ?? "overview"} />
          </>
        )}
      </Answer>
    </Page>
  );
}

function Part({ endpoint, tab }: { endpoint: EndpointView; tab: string }) {
  if (tab === "versions") return <Versions endpoint={endpoint} />;
  if (tab === "profile") return <Profile key={endpoint.name} endpoint={endpoint} />;
  if (tab === "test") return <Test key={endpoint.name} endpoint={endpoint} />;
  if (tab === "logs") return <Logs endpoint={endpoint} />;
  return <Overview endpoint={endpoint} />;
}

function Head({ endpoint, at }: { endpoint: EndpointView; at: number }) {
  const load = loadOf(endpoint, at);
  const { figures } = words;
  return (
    <Figures
      figures={[
        { label: figures.rate, value: load.rate === null ? <span className="dim">{NONE}</span> : measure(load.rate) },
        { label: figures.p50, value: duration(load.p50) },
        {
          label: figures.p99,
          value: (
            <>
              {duration(load.p99)} <span className="dim">{figures.of(duration(endpoint.latency_objective_s))}</span>
            </>
          ),
        },
        { label: figures.errors, value: load.errors === null ? NONE : percent(load.errors, 1) },
        { label: figures.queued, value: count(load.queued) },
        {
          label: figures.kernels,
          value: figures.kernelsOf(count(load.ready), count(endpoint.kernel_min), count(endpoint.kernel_max)),
        },
      ]}
    />
  );
}

type Asked = "stop" | "remove" | "share" | null;

function Actions({ endpoint }: { endpoint: EndpointView }) {
  const owns = useOwns(endpoint.owner);
  const may = useMay("endpoints:write");
  const canChange = useCanChange();
  const address = useAddress();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Asked>(null);
  const close = () => setAsked(null);
  const init = { params: { path: { name: endpoint.name } } };
  const done = () => {
    close();
    endpointsChanged();
  };
  const start = useChange("post", "/v1/endpoints/{name}/start", { onSuccess: done });
  const stop = useChange("post", "/v1/endpoints/{name}/stop", { onSuccess: done });
  const remove = useChange("delete", "/v1/endpoints/{name}", {
    onSuccess: () => {
      navigate("/endpoints");
      endpointsChanged();
    },
  });
  const change = useRevised({ ...changingOf(endpoint.name), onSuccess: close, onSettled: endpointsChanged });
  if (!may || !owns) return null;
  return (
    <>
      {start.error && <Problem error={start.error} />}
      <Button
        variant="default"
        leftSection={<IconRocket size={16} />}
        disabled={!canChange}
        onClick={() => address.set({ deploy: "job" })}
      >
        {words.actions.newVersion}
      </Button>
      {endpoint.started ? (
        <Button
          variant="default"
          leftSection={<IconPlayerStop size={16} />}
          disabled={!canChange}
          onClick={() => setAsked("stop")}
        >
          {words.actions.stop}
        </Button>
      ) : (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          loading={start.isPending}
          disabled={!canChange}
          onClick={() => start.mutate(init)}
        >
          {words.actions.start}
        </Button>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label={words.actions.more}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconShare size={16} />} disabled={!canChange} onClick={() => setAsked("share")}>
            {words.actions.share}
          </Menu.Item>
          <Menu.Item
            c="var(--state-failed)"
            leftSection={<IconTrash size={16} />}
            disabled={!canChange}
            onClick={() => setAsked("remove")}
          >
            {words.actions.remove}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Confirm
        opened={asked === "stop"}
        onClose={close}
        title={words.stop.title(endpoint.name)}
        action={words.stop.action}
        onConfirm={() => stop.mutate(init)}
        pending={stop.isPending}
        error={stop.error}
      >
        {words.stop.body}
      </Confirm>
      <Confirm
        opened={asked === "remove"}
        onClose={close}
        title={words.remove.title(endpoint.name)}
        action={words.remove.action}
        onConfirm={() => remove.mutate(init)}
        pending={remove.isPending}
        error={remove.error}
      >
        {words.remove.body}
      </Confirm>
      {asked === "share" && (
        <ShareDialog
          name={endpoint.name}
          sharedWith={endpoint.shared_with}
          onClose={close}
          onSave={(people) => change.mutate({ shown: endpoint, body: { shared_with: people } })}
          pending={change.isPending}
          error={change.error}
        />
      )}
      {address.get("deploy") !== null && (
        <Deploy endpoint={endpoint} onClose={() => address.set({ deploy: null, job: null })} />
      )}
    </>
  );
}
