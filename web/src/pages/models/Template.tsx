import { Button, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { ask, downloadOf } from "../../api/client";
import type { Refused } from "../../api/problem";
import { useChange, useGet } from "../../api/queries";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { CopyButton } from "../../components/Copy";
import { Crumbs } from "../../components/Crumbs";
import { Facts } from "../../components/Facts";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { textOf, type Unpacked, unpack } from "../../files/untar";
import { bytes, counted } from "../../format/format";
import { text } from "../../text";
import { refetchModelsLater, type Template, useModels } from "./lists";
import { ModelDialog } from "./ModelDialog";
import { written } from "./model_form";
import classes from "./models.module.css";
import { sharedWords } from "./shared_words";
import { TemplateDialog } from "./TemplateDialog";
import { enginesOf } from "./TemplatesTable";

const words = text.models;
const SHOWN_CHARACTERS = 200_000;

/** A template: what it asks for, its files, and the models that are made from it. */
export default function TemplatePage() {
  const { name = "" } = useParams();
  const template = useGet("/v1/templates/{name}", { params: { path: { name } } });
  return (
    <Page
      title={name}
      heading={<Crumbs above={[{ to: "/models/templates", title: words.tabs.templates }]} name={name} />}
      actions={template.data && <Actions template={template.data} />}
    >
      <Answer query={template} rows={5}>
        {(shown) => (
          <>
            <div className={classes.side}>
              <div className={classes.column}>
                <Panel title={words.template.parameters}>
                  <Parameters template={shown} />
                </Panel>
                <Files template={shown} />
              </div>
              <div className={classes.column}>
                <About template={shown} />
                <MadeFromIt name={shown.name} />
              </div>
            </div>
          </>
        )}
      </Answer>
    </Page>
  );
}

function Actions({ template }: { template: Template }) {
  const mayWrite = useMay("models:write");
  const owns = useOwns(template.owner) && mayWrite;
  const navigate = useNavigate();
  const [open, setOpen] = useState<"model" | "replace" | "remove" | null>(null);
  const close = () => setOpen(null);
  const params = { path: { name: template.name }, header: { "if-match": `"${template.revision}"` } };
  const remove = useChange("delete", "/v1/templates/{name}", {
    onSuccess: () => {
      refetchModelsLater();
      navigate("/models/templates");
    },
  });
  return (
    <>
      <Button
        component="a"
        variant="default"
        href={downloadOf(`/v1/templates/${encodeURIComponent(template.name)}/files`)}
        download
        leftSection={<IconDownload size={16} />}
      >
        {words.download}
      </Button>
      {owns && (
        <>
          <Button variant="default" onClick={() => setOpen("replace")}>
            {words.replace}…
          </Button>
          <Button variant="default" onClick={() => setOpen("remove")}>
            {words.remove}…
          </Button>
        </>
      )}
      {mayWrite && <Button onClick={() => setOpen("model")}>{words.newModel}</Button>}
      {open === "model" && <ModelDialog template={template} onClose={close} />}
      {open === "replace" && <TemplateDialog template={template} onClose={close} />}
      <Confirm
        opened={open === "remove"}
        onClose={close}
        title={words.template.removeTitle(template.name)}
        action={words.remove}
        onConfirm={() => remove.mutate({ params })}
        pending={remove.isPending}
        error={remove.error}
      >
        {words.template.removeHint}
      </Confirm>
    </>
  );
}

function About({ template }: { template: Template }) {
  return (
    <Panel title={words.template.about}>
      {template.description !== "" && (
        <Text size="sm" mb="md" className="wrap">
          {template.description}
        </Text>
      )}
      <Facts
        facts={[
          { label: words.template.framework, value: template.framework },
          { label: words.columns.engines, value: enginesOf(template) },
          { label: words.template.mainFile, value: <span className="mono">{template.main_file}</span> },
          ...(template.elastic_script === ""
            ? []
            : [{ label: words.template.elasticFile, value: <span className="mono">{template.elastic_script}</span> }]),
          { label: words.columns.owner, value: template.owner },
          { label: words.model.shared, value: sharedWords(template.shared_with) },
          { label: words.model.revisionLabel, value: template.revision },
          { label: words.columns.changed, value: <Time at={template.changed_at} /> },
          {
            label: words.template.checksum,
            value: (
              <span style={{ display: "flex", alignItems: "center", gap: 4 }}>
                <span className="mono cut" title={template.checksum}>
                  {template.checksum.slice(0, 12)}…
                </span>
                <CopyButton value={template.checksum} />
              </span>
            ),
          },
        ]}
      />
    </Panel>
  );
}

const heads = words.template.parameter;
const PARAMETERS: readonly ShortColumn<Template["parameters"][number]>[] = [
  { title: heads.name, tight: true, cell: (one) => <span className="mono wrap">{one.name}</span> },
  { title: heads.kind, tight: true, cell: (one) => words.template.kinds[one.kind] },
  {
    title: heads.default,
    cell: (one) => (one.default == null ? <i className="dim">{words.template.required}</i> : written(one.default)),
  },
  {
    title: heads.values,
    cell: (one) =>
      one.choices?.length ? one.choices.join(", ") : words.form.bounds(one.minimum ?? null, one.maximum ?? null),
  },
  { title: heads.description, cell: (one) => one.description },
];

function Parameters({ template }: { template: Template }) {
  if (template.parameters.length === 0) return <Text c="dimmed">{words.model.noParameters}</Text>;
  return (
    <ShortTable
      label={words.template.parameters}
      columns={PARAMETERS}
      rows={template.parameters}
      rowId={(one) => one.name}
    />
  );
}

/** The files of a template, and what one of them says: the one in the address. */
function Files({ template }: { template: Template }) {
  const address = useAddress();
  const path = `/v1/templates/${encodeURIComponent(template.name)}/files`;
  const files = useQuery<Unpacked[], Refused>({
    queryKey: [
      "get",
      "/v1/templates/{name}/files",
      { params: { path: { name: template.name, of: template.checksum } } },
    ],
    queryFn: async ({ signal }) => unpack(await (await ask(downloadOf(path), { signal })).blob()),
    gcTime: 30_000,
  });
  return (
    <Panel
      title={words.template.files}
      aside={
        <span className="dim">
          {words.template.whole(counted(template.num_files, "file"), bytes(template.num_bytes))}
        </span>
      }
    >
      <Answer query={files} rows={4}>
        {(all) => {
          const shown = all.find((one) => one.path === (address.get("file") ?? template.main_file)) ?? all[0];
          return (
            <div className={classes.files}>
              <ul className={classes.names}>
                {all.map((one) => (
                  <li key={one.path}>
                    <button
                      type="button"
                      aria-current={one === shown}
                      onClick={() => address.set({ file: one.path })}
                      title={one.path}
                    >
                      <span className="mono cut">{one.path}</span>
                      <span className="dim num">{bytes(one.content.length)}</span>
                    </button>
                  </li>
                ))}
              </ul>
              {shown !== undefined && <Content file={shown} />}
            </div>
          );
        }}
      </Answer>
    </Panel>
  );
}

function Content({ file }: { file: Unpacked }) {
  const content = textOf(file.content);
  if (content === null) return <Text c="dimmed">{words.template.noText}</Text>;
  const isLong = content.length > SHOWN_CHARACTERS;
  return (
    <div style={{ minWidth: 0 }}>
      <section className={classes.code} tabIndex={0} aria-label={file.path}>
        <pre>{isLong ? content.slice(0, SHOWN_CHARACTERS) : content}</pre>
      </section>
      {isLong && (
        <Text size="sm" c="dimmed" mt={4}>
          {words.template.long}
        </Text>
      )}
    </div>
  );
}

function MadeFromIt({ name }: { name: string }) {
  const models = useModels();
  return (
    <Panel title={words.template.models}>
      <Answer query={models} rows={2}>
        {(all) => {
          const made = all.filter((one) => one.settings.template === name);
          if (made.length === 0) return <Text c="dimmed">{words.template.noModels}</Text>;
          return (
            <ul className={classes.names}>
              {made.map((one) => (
                <li key={one.name}>
                  <Link to={`/models/${encodeURIComponent(one.name)}`} className={classes.rowLink}>
                    {one.name}
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
    </Panel>
  );
}
