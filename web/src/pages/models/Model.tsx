import { Alert, Button, Group, Text } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useLocation, useNavigate, useParams } from "react-router";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { type Fact, Facts } from "../../components/Facts";
import { LinkTabs } from "../../components/LinkTabs";
import { Answer, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Age, Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { count, counted, measure, percent } from "../../format/format";
import { text } from "../../text";
import { type Model, refetchModels, refetchModelsLater, useTrainings } from "./lists";
import { ModelDialog } from "./ModelDialog";
import { written } from "./model_form";
import classes from "./models.module.css";
import { shareOf } from "./progress";
import { sharedWords } from "./shared_words";
import { TrainDialog } from "./TrainDialog";
import { TrainingState } from "./TrainingState";
import { pageOf, TrainingsTable } from "./TrainingsTable";

const words = text.models;
const NEWEST = 6;

/** A model: what it is trained on and how, and its trainings. */
export default function ModelPage() {
  const { name = "" } = useParams();
  const { pathname } = useLocation();
  const model = useGet("/v1/models/{name}", { params: { path: { name } } });
  const address = useAddress();
  const mayTrain = useMay("models:write");
  const own = `/models/${encodeURIComponent(name)}`;
  const tabs = [
    { to: own, title: words.tabsOfModel.overview, exact: true },
    { to: `${own}/trainings`, title: words.tabsOfModel.trainings, count: model.data?.num_trainings ?? null },
  ];
  const onTrainings = pathname.endsWith("/trainings");
  return (
    <Page
      title={name}
      heading={<Crumbs above={[{ to: "/models", title: words.title }]} name={name} />}
      actions={model.data && <Actions model={model.data} />}
    >
      <LinkTabs label={words.tabsOfModel.label} tabs={tabs} />
      {onTrainings ? (
        <TrainingsTable model={name} />
      ) : (
        <Answer query={model} rows={5}>
          {(shown) => <Overview model={shown} />}
        </Answer>
      )}
      {mayTrain && address.get("train") !== null && (
        <TrainDialog model={name} onClose={() => address.set({ train: null })} />
      )}
    </Page>
  );
}

function Actions({ model }: { model: Model }) {
  const mayWrite = useMay("models:write");
  const owns = useOwns(model.owner) && mayWrite;
  const address = useAddress();
  const navigate = useNavigate();
  const [open, setOpen] = useState<"edit" | "remove" | null>(null);
  const close = () => setOpen(null);
  const remove = useChange("delete", "/v1/models/{name}", {
    onSuccess: () => {
      refetchModelsLater();
      navigate("/models");
    },
  });
  if (!mayWrite) return null;
  return (
    <>
      {owns && (
        <>
          <Button variant="default" onClick={() => setOpen("edit")}>
            {words.edit}…
          </Button>
          <Button variant="default" onClick={() => setOpen("remove")}>
            {words.remove}…
          </Button>
        </>
      )}
      <Button leftSection={<IconPlayerPlay size={16} />} onClick={() => address.set({ train: "1" })}>
        {words.train}…
      </Button>
      {open === "edit" && <ModelDialog model={model} onClose={close} />}
      <Confirm
        opened={open === "remove"}
        onClose={close}
        title={words.model.removeTitle(model.name)}
        action={words.remove}
        onConfirm={() =>
          remove.mutate({ params: { path: { name: model.name }, header: { "if-match": `"${model.revision}"` } } })
        }
        pending={remove.isPending}
        error={remove.error}
      >
        {words.model.removeHint}
      </Confirm>
    </>
  );
}

function Overview({ model }: { model: Model }) {
  const { settings } = model;
  return (
    <div className={classes.side}>
      <div className={classes.column}>
        <NewerTemplate model={model} />
        <Newest model={model} />
        <div className={classes.halves}>
          <Panel title={words.model.numbers}>
            <Facts facts={numberFacts(settings.hyperparameters)} />
          </Panel>
          <Panel title={words.model.parameters}>
            {Object.keys(settings.parameters).length === 0 ? (
              <Text c="dimmed">{words.model.noParameters}</Text>
            ) : (
              <Facts facts={parameterFacts(settings.parameters)} />
            )}
          </Panel>
        </div>
      </div>
      <Panel title={words.model.about}>
        {model.description !== "" && (
          <Text size="sm" mb="md" className="wrap">
            {model.description}
          </Text>
        )}
        <Facts
          facts={[
            ...settingFacts(settings),
            { label: words.columns.owner, value: model.owner },
            { label: words.model.shared, value: sharedWords(model.shared_with) },
            { label: words.model.created, value: <Time at={model.created_at} /> },
            { label: words.columns.changed, value: <Time at={model.changed_at} /> },
          ]}
        />
      </Panel>
    </div>
  );
}

/** The numbers that are set, by what people call them. */
export function numberFacts(numbers: Model["settings"]["hyperparameters"]): Fact[] {
  return Object.entries(numbers)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => ({
      label: words.names[name] ?? name,
      value: typeof value === "number" ? measure(value) : yesOrNo(value),
    }));
}

export function parameterFacts(parameters: Model["settings"]["parameters"]): Fact[] {
  return Object.entries(parameters).map(([name, value]) => ({ label: name, value: yesOrNo(value) }));
}

function yesOrNo(value: unknown): string {
  return typeof value === "boolean" ? (value ? words.form.yes : words.form.no) : written(value);
}

/** What a model is trained on, and where. */
export function settingFacts(settings: Model["settings"]): Fact[] {
  const template = (
    <Link to={`/models/templates/${encodeURIComponent(settings.template)}`} className={classes.rowLink}>
      {words.model.revision(settings.template, settings.template_revision)}
    </Link>
  );
  const dataset = settings.dataset && (
    <Link to={`/datasets/${encodeURIComponent(settings.dataset)}`} className={classes.rowLink}>
      {settings.dataset}
    </Link>
  );
  return [
    { label: words.columns.template, value: template },
    ...(dataset ? [{ label: words.columns.dataset, value: dataset }] : []),
    ...(settings.data_dir
      ? [{ label: words.model.dataDir, value: <span className="mono">{settings.data_dir}</span> }]
      : []),
    { label: words.columns.engine, value: words.engines[settings.engine] },
    { label: words.model.maxWorkers, value: count(settings.max_workers) },
    { label: words.model.slotsPerWorker, value: count(settings.slots_per_worker) },
    { label: words.model.queue, value: settings.queue },
    { label: words.model.priority, value: count(settings.priority) },
    { label: words.model.environment, value: settings.environment ?? words.model.usual },
    ...(settings.histograms_every == null
      ? []
      : [{ label: words.model.histogramsEvery, value: counted(settings.histograms_every, "step") }]),
  ];
}

/** Says that the template has gone on, and takes it over. */
function NewerTemplate({ model }: { model: Model }) {
  const mayWrite = useMay("models:write");
  const owns = useOwns(model.owner) && mayWrite;
  const canChange = useCanChange();
  const name = model.settings.template;
  const template = useGet("/v1/templates/{name}", { params: { path: { name } } }, { retry: false });
  const take = useChange("patch", "/v1/models/{name}", { onSuccess: refetchModels });
  const newest = template.data?.revision ?? 0;
  if (!owns || newest <= model.settings.template_revision) return null;
  return (
    <Alert color="blue" variant="outline">
      <Group justify="space-between" gap="xs">
        <Text size="sm">{words.model.newerTemplate(newest)}</Text>
        <Button
          variant="default"
          loading={take.isPending}
          disabled={!canChange}
          onClick={() =>
            take.mutate({
              params: { path: { name: model.name }, header: { "if-match": `"${model.revision}"` } },
              body: { newest_template: true },
            })
          }
        >
          {words.model.takeNewest}
        </Button>
      </Group>
      {take.error && <Problem error={take.error} />}
    </Alert>
  );
}

function Newest({ model }: { model: Model }) {
  const trainings = useTrainings(model.name);
  return (
    <Panel
      title={words.model.newest}
      aside={
        model.num_trainings > NEWEST && (
          <Link to={`/models/${encodeURIComponent(model.name)}/trainings`} className={classes.rowLink}>
            {words.model.all(model.num_trainings)}
          </Link>
        )
      }
    >
      <Answer query={trainings} rows={3}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{words.emptyTrainings.hint}</Text>
          ) : (
            <ul className={classes.newest}>
              {all.slice(0, NEWEST).map((one) => (
                <li key={one.name}>
                  <Link to={pageOf(one)} className={`${classes.rowLink} cut`} title={one.name}>
                    {one.name}
                  </Link>
                  <TrainingState state={one.state} />
                  <span className={classes.numbers}>
                    <span className="num">{percent(shareOf(one.progress))}</span>
                    <span className="num">
                      <span className="dim">{words.columns.loss}</span> {measure(one.progress?.loss)}
                    </span>
                    <span className="num dim">
                      <Age since={one.created_at} />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Panel>
  );
}
