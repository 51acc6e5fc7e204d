import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useNavigate, useParams } from "react-router";
import { refetch } from "../../api/cache";
import { downloadOf } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { CopyButton } from "../../components/Copy";
import { Crumbs } from "../../components/Crumbs";
import { Facts } from "../../components/Facts";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { HistogramPanel } from "../../histograms/HistogramPanel";
import { text } from "../../text";
import { DeployDialog } from "./DeployDialog";
import { Insights } from "./Insights";
import { isLive, refetchModels, refetchModelsLater, type Training } from "./lists";
import { numberFacts, parameterFacts, settingFacts } from "./Model";
import classes from "./models.module.css";
import { RunHeader } from "./RunHeader";
import { TrainDialog } from "./TrainDialog";
import { TrainingCharts } from "./TrainingCharts";
import { pageOf, weightsOf } from "./TrainingsTable";

const words = text.models.training;
/** What is asked for while it goes on, and once more when it has ended. */
const SHOWN: readonly string[] = [
  "/v1/jobs/{job_id}",
  "/v1/jobs/{job_id}/chart",
  "/v1/jobs/{job_id}/histograms",
  "/v1/jobs/{job_id}/histograms/{name}",
  "/v1/models/{name}/trainings/{training}/insights",
];

/** A training: how far it is, how it goes, what its course suggests, and what it ran with. */
export default function TrainingPage() {
  const { name: model = "", training: title = "" } = useParams();
  const [live, setLive] = useState(true);
  const params = { path: { name: model, training: title } };
  const training = useGet(
    "/v1/models/{name}/trainings/{training}",
    { params },
    { refetchInterval: live ? 2000 : false }, // how far it is within an epoch, no event tells
  );
  const goesOn = training.data === undefined || isLive(training.data.state);
  if (goesOn !== live) setLive(goesOn);
  useEffect(() => {
    if (live) return;
    refetch((path, { path: of }) => SHOWN.includes(path) && (of?.training === title || of?.job_id !== undefined));
  }, [live, title]);
  const above = [
    { to: "/models", title: text.models.title },
    { to: `/models/${encodeURIComponent(model)}`, title: model },
  ];
  return (
    <Page
      title={`${model} › ${title}`}
      heading={<Crumbs above={above} name={title} />}
      actions={training.data && <Actions training={training.data} live={live} />}
    >
      <Answer query={training} rows={6}>
        {(shown) => (
          <>
            <RunHeader training={shown} live={live} />
            <Insights training={shown} live={live} />
            <div className={classes.side}>
              <div className={classes.column}>
                <TrainingCharts training={shown} live={live} />
                <TrainingHistograms training={shown} live={live} />
              </div>
              <RanWith training={shown} live={live} />
            </div>
          </>
        )}
      </Answer>
    </Page>
  );
}

function TrainingHistograms({ training, live }: { training: Training; live: boolean }) {
  const seesJob = useMay("jobs:read") && training.job_id !== "" && training.state !== "removed";
  return seesJob && training.settings.engine !== "distributed" ? (
    <HistogramPanel jobId={training.job_id} live={live} />
  ) : null;
}

function Actions({ training, live }: { training: Training; live: boolean }) {
  const mayWrite = useMay("models:write");
  const mayDeploy = useMay("endpoints:write");
  const owns = useOwns(training.owner) && mayWrite;
  const navigate = useNavigate();
  const [open, setOpen] = useState<"stop" | "forget" | "deploy" | "train" | null>(null);
  const close = () => setOpen(null);
  const params = { path: { name: training.model, training: training.name } };
  const stop = useChange("post", "/v1/models/{name}/trainings/{training}/stop", {
    onSuccess: () => {
      close();
      refetchModels();
    },
  });
  const forget = useChange("delete", "/v1/models/{name}/trainings/{training}", {
    onSuccess: () => {
      refetchModelsLater();
      navigate(`/models/${encodeURIComponent(training.model)}`);
    },
  });
  const title = `${training.model} › ${training.name}`;
  return (
    <>
      {training.has_weights && <Download path={weightsOf(training)} label={words.weights} />}
      {training.code_hash !== "" && <Download path={`/v1${pageOf(training)}/code`} label={words.code} />}
      {owns && !live && (
        <Button variant="default" onClick={() => setOpen("forget")}>
          {words.forget}
        </Button>
      )}
      {mayWrite && (
        <Button variant="default" onClick={() => setOpen("train")}>
          {words.again}
        </Button>
      )}
      {owns && live && training.state !== "stopping" && (
        <Button variant="default" onClick={() => setOpen("stop")}>
          {words.stop}
        </Button>
      )}
      {mayDeploy && owns && !live && training.has_weights && (
        <Button onClick={() => setOpen("deploy")}>{words.deploy}</Button>
      )}
      {open === "deploy" && <DeployDialog training={training} onClose={close} />}
      {open === "train" && <TrainDialog model={training.model} onClose={close} />}
      <Confirm
        opened={open === "stop"}
        onClose={close}
        title={words.stopTitle(title)}
        action={words.stopAction}
        onConfirm={() => stop.mutate({ params })}
        pending={stop.isPending}
        error={stop.error}
      >
        {words.stopHint}
      </Confirm>
      <Confirm
        opened={open === "forget"}
        onClose={close}
        title={words.forgetTitle(title)}
        action={words.forgetAction}
        onConfirm={() => forget.mutate({ params: { ...params, header: { "if-match": `"${training.revision}"` } } })}
        pending={forget.isPending}
        error={forget.error}
      >
        {words.forgetHint}
      </Confirm>
    </>
  );
}

function Download({ path, label }: { path: string; label: string }) {
  return (
    <Button component="a" variant="default" href={downloadOf(path)} download leftSection={<IconDownload size={16} />}>
      {label}
    </Button>
  );
}

function RanWith({ training, live }: { training: Training; live: boolean }) {
  const { settings, weights_from: origin } = training;
  return (
    <Panel title={live ? words.settings : words.ranWith}>
      <Facts
        facts={[
          ...settingFacts(settings),
          ...(origin === null ? [] : [{ label: words.origin, value: origin.source }]),
          ...numberFacts(settings.hyperparameters),
          ...parameterFacts(settings.parameters),
          { label: text.models.columns.owner, value: training.owner },
          { label: text.models.columns.created, value: <Time at={training.created_at} /> },
          ...(training.code_hash === "" ? [] : [{ label: words.codeHash, value: <Hash value={training.code_hash} /> }]),
          ...(training.dataset_checksum === ""
            ? []
            : [{ label: words.checksum, value: <Hash value={training.dataset_checksum} /> }]),
        ]}
      />
    </Panel>
  );
}

function Hash({ value }: { value: string }) {
  return (
    <span className={classes.hash}>
      <span className="mono cut" title={value}>
        {value.slice(0, 12)}…
      </span>
      <CopyButton value={value} />
    </span>
  );
}
