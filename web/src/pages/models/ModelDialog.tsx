import { Alert, Button, Group, Select, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { call } from "../../api/client";
import { keyOf, useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Dialog } from "../../components/Dialog";
import { Answer, Empty, Problem } from "../../components/Notice";
import { text } from "../../text";
import { type Model, refetchModels, type Template, useTemplates } from "./lists";
import { DatasetField, EngineField, NumberFields, ParameterFields, PlaceFields, ShareFields } from "./ModelFields";
import { formOf, newForm, patchOf, requestOf, type Tables } from "./model_form";
import classes from "./models.module.css";
import { Theirs } from "./Theirs";
import { useFocusWrong, wrongOf } from "./wrong";

const words = text.models;

interface Props {
  onClose: () => void;
  /** The one to edit; a new one is made without. */
  model?: Model;
  /** The template that a new one is made from. */
  template?: Template;
}

/** Makes a model from a template, or changes one. */
export function ModelDialog({ onClose, model, template }: Props) {
  const tables = useGet("/v1/hyperparameters", {});
  const templates = useTemplates();
  const title = model === undefined ? words.form.titleNew : words.form.titleEdit(model.name);
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{title}</span>} size={760}>
      <Answer query={tables} rows={6}>
        {(found) =>
          model === undefined ? (
            <Answer query={templates}>
              {(all) =>
                all.length === 0 ? (
                  <Empty
                    title={words.emptyTemplates.title}
                    hint={words.noTemplate}
                    command={words.emptyTemplates.command}
                  />
                ) : (
                  <NewForm
                    tables={found}
                    templates={all}
                    first={template ?? (all.length === 1 ? all[0] : undefined)}
                    onClose={onClose}
                  />
                )
              }
            </Answer>
          ) : (
            <EditForm tables={found} model={model} onClose={onClose} />
          )
        }
      </Answer>
    </Dialog>
  );
}

interface NewProps {
  tables: Tables;
  templates: readonly Template[];
  first: Template | undefined;
  onClose: () => void;
}

function NewForm({ tables, templates, first, onClose }: NewProps) {
  const [form, setForm] = useState(() => newForm(first ?? null));
  const navigate = useNavigate();
  const template = templates.find(({ name }) => name === form.template);
  const add = useChange("post", "/v1/models", {
    onSuccess: (made) => {
      refetchModels();
      navigate(`/models/${encodeURIComponent(made.name)}`);
    },
  });
  const { wrong, rest } = wrongOf(add.error, OWN_FIELDS);
  const ref = useFocusWrong(add.error);
  const choose = (name: string | null) => {
    const chosen = templates.find((one) => one.name === name);
    if (chosen === undefined) return;
    const fresh = newForm(chosen);
    const engine = chosen.engines.includes(form.engine) ? form.engine : fresh.engine;
    setForm({ ...form, template: chosen.name, engine, parameters: {} });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate({ body: requestOf(form, tables, template?.parameters ?? []) });
  };
  return (
    <form ref={ref} onSubmit={submit} noValidate>
      <Stack gap="lg">
        <div className={classes.fields}>
          <Select
            label={words.form.template}
            data={templates.map(({ name }) => name)}
            value={form.template || null}
            onChange={choose}
            allowDeselect={false}
            searchable
            required
            error={wrong("template")}
          />
          <TextInput
            label={words.form.name}
            required
            maxLength={50}
            spellCheck={false}
            data-autofocus
            value={form.name}
            onChange={(event) => setForm({ ...form, name: event.currentTarget.value })}
            error={wrong("name")}
          />
          <EngineField form={form} change={setForm} wrong={wrong} engines={template?.engines ?? []} />
          <DatasetField form={form} change={setForm} wrong={wrong} />
        </div>
        <ParameterFields form={form} change={setForm} wrong={wrong} declared={template?.parameters ?? []} />
        <NumberFields form={form} change={setForm} wrong={wrong} tables={tables} />
        <PlaceFields form={form} change={setForm} wrong={wrong} />
        <ShareFields form={form} change={setForm} wrong={wrong} />
        {rest !== null && <Problem error={rest} />}
        <Buttons onClose={onClose} action={words.form.add} pending={add.isPending} disabled={template === undefined} />
      </Stack>
    </form>
  );
}

function EditForm({ tables, model, onClose }: { tables: Tables; model: Model; onClose: () => void }) {
  const [before] = useState(model);
  const [form, setForm] = useState(() => formOf(model));
  const [theirs, setTheirs] = useState<Model | null>(null);
  const queries = useQueryClient();
  const params = { path: { name: model.name } };
  const edit = useChange("patch", "/v1/models/{name}", {
    onSuccess: () => {
      refetchModels();
      onClose();
    },
    onError: (error) => {
      if (error.status !== 412) return;
      void call("get", "/v1/models/{name}", { params }).then((now) => {
        queries.setQueryData(keyOf("/v1/models/{name}", { params }), now);
        setTheirs(now);
      });
    },
  });
  const { wrong, rest } = wrongOf(edit.error?.status === 412 ? null : edit.error, OWN_FIELDS);
  const ref = useFocusWrong(edit.error);
  const patch = patchOf(form, before, tables);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const revision = (theirs ?? before).revision;
    edit.mutate({ params: { ...params, header: { "if-match": `"${revision}"` } }, body: patch });
  };
  return (
    <form ref={ref} onSubmit={submit} noValidate>
      <Stack gap="lg">
        <div className={classes.fields}>
          <EngineField form={form} change={setForm} wrong={wrong} engines={model.template_engines} />
          <DatasetField form={form} change={setForm} wrong={wrong} />
        </div>
        <ParameterFields form={form} change={setForm} wrong={wrong} declared={model.template_parameters} />
        <NumberFields form={form} change={setForm} wrong={wrong} tables={tables} />
        <PlaceFields form={form} change={setForm} wrong={wrong} />
        <ShareFields form={form} change={setForm} wrong={wrong} />
        {theirs !== null && (
          <Alert ref={showThis} color="yellow" variant="outline" role="alert">
            {text.changed412}
            <Theirs before={formOf(before)} theirs={formOf(theirs)} mine={form} />
          </Alert>
        )}
        {rest !== null && <Problem error={rest} />}
        <Buttons
          onClose={onClose}
          action={theirs === null ? words.form.save : words.form.overwrite}
          pending={edit.isPending}
          disabled={Object.keys(patch).length === 0}
        />
      </Stack>
    </form>
  );
}

const OWN_FIELDS =
  /^(template|name|engine|dataset|max_workers|slots_per_worker|queue|priority|environment|histograms_every|shared_with|description|(hyperparameters|parameters)\..+)$/;

export function showThis(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

interface ButtonsProps {
  onClose: () => void;
  action: string;
  pending: boolean;
  disabled?: boolean;
}

export function Buttons({ onClose, action, pending, disabled = false }: ButtonsProps) {
  const canChange = useCanChange();
  return (
    <Group justify="flex-end" gap="xs">
      <Button variant="default" onClick={onClose}>
        {text.cancel}
      </Button>
      <Button type="submit" loading={pending} disabled={disabled || !canChange}>
        {action}
      </Button>
    </Group>
  );
}
