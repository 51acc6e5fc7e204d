import { downloadOf } from "../../api/client";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { measure, NONE, percent } from "../../format/format";
import { text } from "../../text";
import { found, type Keys, sorted, type Training, useTrainings } from "./lists";
import classes from "./models.module.css";
import { shareOf } from "./progress";
import { Toolbar } from "./Toolbar";
import { TrainingState } from "./TrainingState";

const words = text.models;

const COLUMNS: Column<Training>[] = [
  {
    id: "name",
    header: words.columns.training,
    size: 160,
    cell: ({ row }) => (
      <span className="cut" title={row.original.name}>
        {row.original.name}
      </span>
    ),
    meta: { sort: "name", grow: true },
  },
  {
    id: "model",
    header: words.columns.model,
    size: 160,
    cell: ({ row }) => row.original.model,
    meta: { sort: "model" },
  },
  {
    id: "state",
    header: words.columns.state,
    size: 124,
    cell: ({ row }) => <TrainingState state={row.original.state} />,
  },
  {
    id: "progress",
    header: words.columns.progress,
    size: 90,
    cell: ({ row }) => percent(shareOf(row.original.progress)),
    meta: { numeric: true },
  },
  {
    id: "loss",
    header: words.columns.loss,
    size: 90,
    cell: ({ row }) => measure(row.original.progress?.loss),
    meta: { numeric: true, sort: "loss" },
  },
  { id: "dataset", header: words.columns.dataset, size: 150, cell: ({ row }) => row.original.settings.dataset ?? NONE },
  { id: "from", header: words.columns.from, size: 150, cell: ({ row }) => row.original.weights_from?.source ?? NONE },
  { id: "job", header: words.columns.job, size: 90, cell: ({ row }) => row.original.job_id || NONE },
  {
    id: "owner",
    header: words.columns.owner,
    size: 110,
    cell: ({ row }) => row.original.owner,
    meta: { sort: "owner" },
  },
  {
    id: "created",
    header: words.columns.created,
    size: 100,
    cell: ({ row }) => <Age since={row.original.created_at} />,
    meta: { numeric: true, sort: "created" },
  },
  {
    id: "download",
    header: <span className="unseen">{text.download}</span>,
    size: 110,
    cell: ({ row }) => (
      <a href={downloadOf(weightsOf(row.original))} download className={classes.rowLink}>
        {text.download}
      </a>
    ),
  },
];

const KEYS: Keys<Training> = {
  name: (row) => row.name,
  model: (row) => row.model,
  loss: (row) => row.progress?.loss ?? Number.POSITIVE_INFINITY,
  owner: (row) => row.owner,
  created: (row) => row.created_at,
};

export function pageOf(training: Pick<Training, "model" | "name">): string {
  return `/models/${encodeURIComponent(training.model)}/trainings/${encodeURIComponent(training.name)}`;
}

export function weightsOf(training: Training): string {
  return `/v1${pageOf(training)}/weights`;
}

interface Props {
  /** Only those of a model. */
  model?: string;
  /** Only those whose weights can be downloaded. */
  onlyWeights?: boolean;
}

/** Trainings, the newest first. */
export function TrainingsTable({ model, onlyWeights = false }: Props) {
  const trainings = useTrainings(model ?? null);
  const address = useAddress();
  const sort = address.get("sort") ?? "-created";
  const hidden = [
    ...(model === undefined ? [] : ["model"]),
    ...(onlyWeights ? ["progress", "job"] : ["download", "dataset"]),
  ];
  return (
    <Answer query={trainings} rows={6}>
      {(every) => {
        const all = onlyWeights ? every.filter((one) => one.has_weights) : every;
        const { title, hint, command } = onlyWeights ? words.emptyWeights : words.emptyTrainings;
        if (all.length === 0) return <Empty title={title} hint={hint} command={command} />;
        const rows = sorted(
          found(all, address.get("q") ?? "", (row) => [row.name, row.model, row.owner, row.job_id, row.state]),
          sort,
          KEYS,
        );
        return (
          <>
            <Toolbar rows={rows.length} noun="training" />
            <DataTable
              label={onlyWeights ? words.tabs.weights : words.tabs.trainings}
              columns={COLUMNS}
              rows={rows}
              rowId={(row) => `${row.model}/${row.name}`}
              href={pageOf}
              sort={sort}
              onSort={(next) => address.set({ sort: next })}
              hidden={hidden}
              card={(row) => <TrainingCard training={row} />}
              empty={<Empty title={words.none} hint={words.noneHint} />}
            />
          </>
        );
      }}
    </Answer>
  );
}

function TrainingCard({ training }: { training: Training }) {
  return (
    <>
      <div className={classes.cardTop}>
        <span className="cut">
          {training.model} › {training.name}
        </span>
        <TrainingState state={training.state} />
      </div>
      <div className="dim">
        {percent(shareOf(training.progress))} · {words.columns.loss} {measure(training.progress?.loss)} ·{" "}
        <Age since={training.created_at} />
      </div>
    </>
  );
}
