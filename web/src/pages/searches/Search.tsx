import { ActionIcon, Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import {
  IconAdjustments,
  IconDots,
  IconPlayerPlay,
  IconPlayerStop,
  IconPlus,
  IconRocket,
  IconShare,
  IconTrash,
} from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { messageOf } from "../../api/cache";
import type { Refused } from "../../api/problem";
import { useChange, useGet } from "../../api/queries";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { Figures } from "../../components/Facts";
import { LinkTabs } from "../../components/LinkTabs";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { ShareDialog } from "../../components/ShareDialog";
import { count, duration, measure, NONE } from "../../format/format";
import { text } from "../../text";
import { AddTrial } from "./AddTrial";
import { searchesChanged } from "./changed";
import { changingOf } from "./changing";
import { Limits } from "./Limits";
import { Overview } from "./Overview";
import { Plots } from "./Plots";
import { Progress } from "./Progress";
import { Status } from "./Status";
import type { SearchView } from "./shown";
import { Trials } from "./Trials";

const words = text.searches;
const TABS = ["overview", "trials", "plots"] as const;

/** A search: the best so far, how long it takes, and why it does what it does. */
export default function Search() {
  const { name = "", tab } = useParams();
  const search = useGet("/v1/searches/{name}", { params: { path: { name } } });
  return (
    <Page
      title={name}
      heading={
        <Crumbs above={[{ to: "/searches", title: text.nav.searches }]} name={name} colour={search.data?.colour}>
          {search.data && <Status state={search.data.state} />}
        </Crumbs>
      }
      actions={search.data && <Actions search={search.data} />}
    >
      <Answer query={search} rows={5}>
        {(found) => (
          <>
            <Head search={found} />
            <LinkTabs
              label={words.tabsLabel}
              tabs={TABS.map((one) => ({
                to: one === "overview" ? `/searches/${name}` : `/searches/${name}/${one}`,
                title: words.tabs[one],
                exact: one === "overview",
                ...(one === "trials" && { count: found.num_trials }),
              }))}
            />
            {tab === "trials" ? (
              <Trials search={found} />
            ) : tab === "plots" ? (
              <Plots search={found} />
            ) : (
              <Overview search={found} />
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

function Head({ search }: { search: SearchView }) {
  const { figures } = words;
  const several = search.settings.objectives.length > 1;
  const front = useGet(
    "/v1/searches/{name}/best",
    { params: { path: { name: search.name }, query: { limit: 1000 } } },
    { enabled: several },
  );
  return (
    <Figures
      figures={[
        several
          ? { label: figures.front, value: count(front.data?.trials.length) }
          : {
              label: `${figures.best} ${search.settings.objectives[0]?.metric ?? ""}`,
              value: search.best ? (
                <>
                  {measure(search.best.results?.[0])}{" "}
                  <Link
                    to={search.best.job_id ? `/jobs/${search.best.job_id}` : "#"}
                    style={{ fontSize: 14, fontWeight: 400 }}
                  >
                    {figures.by(search.best.number)}
                  </Link>
                </>
              ) : (
                <span className="dim">{NONE}</span>
              ),
            },
        { label: figures.trials, value: <Progress search={search} /> },
        { label: figures.left, value: duration(search.eta_s) },
        { label: figures.ran, value: duration(search.ran_s) },
      ]}
    />
  );
}

type Asked = "remove" | "share" | "limits" | "add" | null;

function Actions({ search }: { search: SearchView }) {
  const owns = useOwns(search.owner);
  const may = useMay("jobs:write");
  const mayDeploy = useMay("endpoints:write");
  const canChange = useCanChange();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Asked>(null);
  const close = () => setAsked(null);
  const init = { params: { path: { name: search.name } } };
  const refused = (error: Refused) => notifications.show({ color: "red", message: messageOf(error) });
  const stop = useChange("post", "/v1/searches/{name}/stop", { onSuccess: searchesChanged, onError: refused });
  const resume = useChange("post", "/v1/searches/{name}/resume", { onSuccess: searchesChanged, onError: refused });
  const remove = useChange("delete", "/v1/searches/{name}", {
    onSuccess: () => {
      navigate("/searches");
      searchesChanged();
    },
  });
  const change = useRevised({ ...changingOf(search.name), onSuccess: close, onSettled: searchesChanged });
  const deploy = mayDeploy && search.best?.job_id && (
    <Button
      component={Link}
      to={`/endpoints?deploy=job&job=${search.best.job_id}`}
      variant="default"
      leftSection={<IconRocket size={16} />}
    >
      {words.actions.deploy}
    </Button>
  );
  if (!may || !owns) return deploy || null;
  const item = (icon: typeof IconShare, label: string, what: Asked, colour?: string) => {
    const Icon = icon;
    return (
      <Menu.Item
        {...(colour && { c: colour })}
        leftSection={<Icon size={16} />}
        disabled={!canChange}
        onClick={() => setAsked(what)}
      >
        {label}
      </Menu.Item>
    );
  };
  return (
    <>
      {deploy}
      {search.state === "running" && (
        <Button
          variant="default"
          leftSection={<IconPlayerStop size={16} />}
          loading={stop.isPending}
          disabled={!canChange}
          onClick={() => stop.mutate(init)}
        >
          {words.actions.stop}
        </Button>
      )}
      {(search.state === "stopped" || search.state === "failed") && (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          loading={resume.isPending}
          disabled={!canChange}
          onClick={() => resume.mutate(init)}
        >
          {words.actions.resume}
        </Button>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label={words.actions.more}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {item(IconAdjustments, words.actions.limits, "limits")}
          {search.settings.population == null && item(IconPlus, words.actions.add, "add")}
          {item(IconShare, words.actions.share, "share")}
          {item(IconTrash, words.actions.remove, "remove", "var(--state-failed)")}
        </Menu.Dropdown>
      </Menu>
      <Confirm
        opened={asked === "remove"}
        onClose={close}
        title={words.remove.title(search.name)}
        action={words.remove.action}
        onConfirm={() => remove.mutate(init)}
        pending={remove.isPending}
        error={remove.error}
      >
        {words.remove.body}
      </Confirm>
      {asked === "limits" && <Limits search={search} onClose={close} />}
      {asked === "add" && <AddTrial search={search} onClose={close} />}
      {asked === "share" && (
        <ShareDialog
          name={search.name}
          sharedWith={search.settings.shared_with}
          onClose={close}
          onSave={(people) => change.mutate({ shown: search, body: { shared_with: people } })}
          pending={change.isPending}
          error={change.error}
        />
      )}
    </>
  );
}
