import type { ReactNode } from "react";
import { Link } from "react-router";
import { useMay } from "../../app/session";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { count, NONE } from "../../format/format";
import { text } from "../../text";
import { found, type Keys, type Model, sorted, useModels } from "./lists";
import classes from "./models.module.css";
import { Toolbar } from "./Toolbar";

const words = text.models;

const COLUMNS: Column<Model>[] = [
  {
    id: "name",
    header: words.columns.name,
    cell: ({ row }) => (
      <span className="cut" title={row.original.name}>
        {row.original.name}
      </span>
    ),
    meta: { sort: "name", grow: true },
  },
  {
    id: "template",
    header: words.columns.template,
    size: 180,
    cell: ({ row }) => row.original.settings.template,
    meta: { sort: "template" },
  },
  {
    id: "dataset",
    header: words.columns.dataset,
    size: 180,
    cell: ({ row }) => row.original.settings.dataset ?? row.original.settings.data_dir ?? NONE,
    meta: { sort: "dataset" },
  },
  {
    id: "engine",
    header: words.columns.engine,
    size: 110,
    cell: ({ row }) => words.engines[row.original.settings.engine],
  },
  {
    id: "workers",
    header: words.columns.workers,
    size: 100,
    cell: ({ row }) => count(row.original.settings.max_workers),
    meta: { numeric: true },
  },
  {
    id: "trainings",
    header: words.columns.trainings,
    size: 110,
    cell: ({ row }) => count(row.original.num_trainings),
    meta: { numeric: true, sort: "trainings" },
  },
  {
    id: "owner",
    header: words.columns.owner,
    size: 130,
    cell: ({ row }) => row.original.owner,
    meta: { sort: "owner" },
  },
  {
    id: "changed",
    header: words.columns.changed,
    size: 110,
    cell: ({ row }) => <Age since={row.original.changed_at} />,
    meta: { numeric: true, sort: "changed" },
  },
  {
    id: "train",
    header: <span className="unseen">{words.train}</span>,
    size: 80,
    cell: ({ row }) => (
      <Link
        to={`?train=${encodeURIComponent(row.original.name)}`}
        className={classes.rowLink}
        aria-label={text.models.trainDialog.title(row.original.name)}
      >
        {words.train}
      </Link>
    ),
  },
];

const KEYS: Keys<Model> = {
  name: (row) => row.name,
  template: (row) => row.settings.template,
  dataset: (row) => row.settings.dataset ?? "",
  trainings: (row) => row.num_trainings,
  owner: (row) => row.owner,
  changed: (row) => row.changed_at,
};

/** The models that one sees. */
export function ModelsTable({ add }: { add: ReactNode }) {
  const models = useModels();
  const address = useAddress();
  const mayTrain = useMay("models:write");
  const sort = address.get("sort") ?? "name";
  return (
    <Answer query={models} rows={6}>
      {(all) => {
        const { title, hint, command } = words.emptyModels;
        if (all.length === 0) return <Empty title={title} hint={hint} command={command} action={add} />;
        const rows = sorted(
          found(all, address.get("q") ?? "", (row) => [
            row.name,
            row.owner,
            row.settings.template,
            row.settings.dataset ?? "",
          ]),
          sort,
          KEYS,
        );
        return (
          <>
            <Toolbar rows={rows.length} noun="model" />
            <DataTable
              label={words.tabs.models}
              columns={COLUMNS}
              rows={rows}
              rowId={(row) => row.name}
              href={(row) => `/models/${encodeURIComponent(row.name)}`}
              sort={sort}
              onSort={(next) => address.set({ sort: next })}
              hidden={mayTrain ? [] : ["train"]}
              card={(row) => <ModelCard model={row} />}
              empty={<Empty title={words.none} hint={words.noneHint} />}
            />
          </>
        );
      }}
    </Answer>
  );
}

function ModelCard({ model }: { model: Model }) {
  const { settings } = model;
  return (
    <>
      <div className={classes.cardTop}>
        <span className="cut">{model.name}</span>
        <span className="dim">{words.engines[settings.engine]}</span>
      </div>
      <div className="dim cut">
        {settings.template} · {settings.dataset ?? settings.data_dir ?? NONE} · {words.columns.trainings}{" "}
        {count(model.num_trainings)}
      </div>
    </>
  );
}
