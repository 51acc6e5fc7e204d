import { lazy, Suspense } from "react";
import { useParams } from "react-router";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { LinkTabs } from "../../components/LinkTabs";
import { Loading, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { text } from "../../text";
import { Actions } from "./Actions";
import { isOver } from "./facts";
import { Header, ProgressLine } from "./Header";
import Overview from "./Overview";

export type JobDetail = Schemas["JobDetail"];

const words = text.job;
const TABS = {
  overview: Overview,
  metrics: lazy(() => import("./metrics/Metrics")),
  workers: lazy(() => import("./Workers")),
  logs: lazy(() => import("./logs/Logs")),
  events: lazy(() => import("./Events")),
  config: lazy(() => import("./Configuration")),
  results: lazy(() => import("./Results")),
};
type Tab = keyof typeof TABS;
const NAMES = Object.keys(TABS) as Tab[];
/** No event tells of progress. */
const PROGRESS_MS = 2000;

/** A job: how far it is, with how many slots, why; and all there is of it, one address for each part. */
export default function JobPage() {
  const { id = "", tab = "overview" } = useParams();
  const query = useGet("/v1/jobs/{job_id}", { params: { path: { job_id: id } } });
  const isRunning = query.data !== undefined && !isOver(query.data.job);
  useGet("/v1/jobs/{job_id}", { params: { path: { job_id: id } } }, { refetchInterval: isRunning && PROGRESS_MS });
  const name = NAMES.find((known) => known === tab) ?? "overview";
  const Shown = TABS[name];
  const detail = query.data;
  if (detail === undefined) {
    return (
      <Page title={id}>
        {query.error === null ? <Loading rows={5} /> : <Problem error={query.error} retry={() => query.refetch()} />}
      </Page>
    );
  }
  const numLive = detail.tasks.filter((task) => task.ended_at == null).length;
  return (
    <Page
      title={`${id} ${detail.job.spec.name}`}
      heading={<Header job={detail.job} />}
      actions={<Actions job={detail.job} />}
    >
      <ProgressLine job={detail.job} />
      <LinkTabs
        label={words.tabs.label}
        tabs={NAMES.map((known) => ({
          to: known === "overview" ? `/jobs/${id}` : `/jobs/${id}/${known}`,
          title: words.tabs[known],
          exact: known === "overview",
          ...(known === "workers" && numLive > 0 && { count: numLive }),
        }))}
      />
      <Suspense fallback={<Loading rows={4} />}>
        <Shown key={id} detail={detail} />
      </Suspense>
    </Page>
  );
}
