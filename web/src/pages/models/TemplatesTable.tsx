import type { ReactNode } from "react";
import { type Column, DataTable } from "../../components/DataTable";
import { Answer, Empty } from "../../components/Notice";
import { Age } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { bytes, count } from "../../format/format";
import { text } from "../../text";
import { found, type Keys, sorted, type Template, useTemplates } from "./lists";
import classes from "./models.module.css";
import { Toolbar } from "./Toolbar";

const words = text.models;

const COLUMNS: Column<Template>[] = [
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
  { id: "framework", header: words.columns.framework, size: 130, cell: ({ row }) => row.original.framework },
  { id: "engines", header: words.columns.engines, size: 220, cell: ({ row }) => enginesOf(row.original) },
  {
    id: "parameters",
    header: words.columns.parameters,
    size: 120,
    cell: ({ row }) => count(row.original.parameters.length),
    meta: { numeric: true },
  },
  {
    id: "files",
    header: words.columns.files,
    size: 80,
    cell: ({ row }) => count(row.original.num_files),
    meta: { numeric: true, sort: "files" },
  },
  {
    id: "size",
    header: words.columns.size,
    size: 100,
    cell: ({ row }) => bytes(row.original.num_bytes),
    meta: { numeric: true, sort: "size" },
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
];

const KEYS: Keys<Template> = {
  name: (row) => row.name,
  files: (row) => row.num_files,
  size: (row) => row.num_bytes,
  owner: (row) => row.owner,
  changed: (row) => row.changed_at,
};

export function enginesOf(template: Pick<Template, "engines">): string {
  return template.engines.map((engine) => words.engines[engine]).join(", ");
}

/** The templates that one sees. */
export function TemplatesTable({ add }: { add: ReactNode }) {
  const templates = useTemplates();
  const address = useAddress();
  const sort = address.get("sort") ?? "name";
  return (
    <Answer query={templates} rows={6}>
      {(all) => {
        const { title, hint, command } = words.emptyTemplates;
        if (all.length === 0) return <Empty title={title} hint={hint} command={command} action={add} />;
        const rows = sorted(
          found(all, address.get("q") ?? "", (row) => [row.name, row.owner, row.framework, row.description]),
          sort,
          KEYS,
        );
        return (
          <>
            <Toolbar rows={rows.length} noun="template" />
            <DataTable
              label={words.tabs.templates}
              columns={COLUMNS}
              rows={rows}
              rowId={(row) => row.name}
              href={(row) => `/models/templates/${encodeURIComponent(row.name)}`}
              sort={sort}
              onSort={(next) => address.set({ sort: next })}
              card={(row) => <TemplateCard template={row} />}
              empty={<Empty title={words.none} hint={words.noneHint} />}
            />
          </>
        );
      }}
    </Answer>
  );
}

function TemplateCard({ template }: { template: Template }) {
  return (
    <>
      <div className={classes.cardTop}>
        <span className="cut">{template.name}</span>
        <span className="dim">{template.framework}</span>
      </div>
      <div className="dim cut">
        {enginesOf(template)} · {bytes(template.num_bytes)}
      </div>
    </>
  );
}
