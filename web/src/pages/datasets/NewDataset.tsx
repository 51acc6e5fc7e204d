import {
  Button,
  Checkbox,
  Group,
  NumberInput,
  Radio,
  SegmentedControl,
  Select,
  Stack,
  Textarea,
  TextInput,
} from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { call } from "../../api/client";
import { DATASET } from "../../api/constraints";
import { Refused } from "../../api/problem";
import { useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Crumbs } from "../../components/Crumbs";
import { DropFiles } from "../../components/DropFiles";
import { Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { SharingField } from "../../components/Sharing";
import { useAddress } from "../../components/useAddress";
import type { Chosen } from "../../files/chosen";
import { bytes } from "../../format/format";
import { text } from "../../text";
import { contentOf, nameFrom, nameIn } from "./content";
import classes from "./Datasets.module.css";
import { DRAFT_FIELDS, type Draft, type DraftField, INITIAL, KINDS, problemsOf, requestOf } from "./draft";
import { Progressing } from "./Progressing";
import { add, useSending } from "./uploads";

const words = text.datasets;
const TYPING_MS = 400;

export default function NewDataset() {
  const form = useDraft();
  const { draft } = form;
  const address = useAddress();
  const fromDisk = address.get("from") === "path";
  const canChange = useCanChange();
  const navigate = useNavigate();
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [sharedWith, setSharedWith] = useState<string[]>([]);
  const [attempted, setAttempted] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Refused | null>(null);
  const sending = useSending(draft.name.trim());
  const problems = problemsOf(draft, fromDisk, DATASET);
  const errorOf = (field: DraftField) =>
    refused?.of(field === "path" ? "source.path" : field) ??
    ((attempted || form.touched.has(field)) && problems[field] !== undefined ? problems[field] : null);
  const choose = (next: Chosen | null) => {
    setChosen(next);
    if (next !== null && draft.name === "") form.set("name", nameFrom(next));
    if (next?.name.toLowerCase().endsWith(".csv") && !next.isFolder && !form.touched.has("kind"))
      form.set("kind", "csv");
  };
  const create = async () => {
    setAttempted(true);
    setRefused(null);
    if (Object.keys(problems).length > 0 || (!fromDisk && chosen === null) || busy || !canChange) return;
    setBusy(true);
    try {
      const request = requestOf(draft, sharedWith);
      const made = fromDisk
        ? await call("post", "/v1/datasets", { body: { ...request, source: { path: draft.path.trim() } } })
        : chosen && (await add(request, contentOf(chosen)));
      if (made) navigate(`/datasets/${encodeURIComponent(made.name)}`);
    } catch (error) {
      setRefused(error instanceof Refused ? error : new Refused(0, String(error)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Page
      title={words.newTitle}
      heading={<Crumbs above={[{ to: "/datasets", title: words.title }]} name={words.newTitle} />}
    >
      <form
        className={classes.form}
        noValidate
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          void create();
        }}
      >
        <Kinds value={draft.kind} onChange={(kind) => form.set("kind", kind)} disabled={busy} />
        <Panel title={words.fields.from}>
          <Stack gap="sm">
            <SegmentedControl
              aria-label={words.fields.from}
              disabled={busy}
              data={Object.entries(words.from).map(([value, label]) => ({ value, label }))}
              value={fromDisk ? "path" : "upload"}
              onChange={(from) => address.set({ from: from === "path" ? from : null })}
            />
            {fromDisk ? (
              <Field
                form={form}
                field="path"
                label={words.fields.path}
                hint={words.hints.path}
                error={errorOf("path")}
              />
            ) : (
              <Files
                name={draft.name.trim()}
                chosen={chosen}
                onChoose={choose}
                error={attempted && chosen === null ? words.noFiles : null}
                disabled={busy}
              />
            )}
            <Field form={form} field="name" label={words.fields.name} hint={words.hints.name} error={errorOf("name")} />
            <Textarea
              label={words.fields.description}
              autosize
              maxRows={8}
              value={draft.description}
              error={errorOf("description")}
              onChange={(event) => form.set("description", event.currentTarget.value)}
            />
          </Stack>
        </Panel>
        {draft.kind !== "any" && <Rules form={form} errorOf={errorOf} />}
        <Panel title={text.sharing.title}>
          <SharingField value={sharedWith} onChange={setSharedWith} error={refused?.of("shared_with")} />
        </Panel>
        {refused !== null && <Problem error={refused} />}
        {sending !== null && (busy || refused === null) && (
          <Progressing sending={sending} onGoOn={() => void create()} canGoOn={chosen !== null} />
        )}
        <Group>
          <Button type="submit" size="sm" loading={busy} disabled={!canChange}>
            {words.create}
          </Button>
        </Group>
      </form>
    </Page>
  );
}

interface Form {
  draft: Draft;
  set: (field: DraftField, value: string) => void;
  touched: ReadonlySet<DraftField>;
}

/** What is typed, kept in the address: after a reload the same files are chosen again, and nothing is typed again. */
function useDraft(): Form {
  const { get, set: setAddress } = useAddress();
  const [draft, setDraft] = useState<Draft>(() => ({
    ...INITIAL,
    ...Object.fromEntries(DRAFT_FIELDS.map((field) => [field, get(field) ?? INITIAL[field]])),
  }));
  const [touched, setTouched] = useState<ReadonlySet<DraftField>>(new Set());
  useEffect(() => {
    const timer = window.setTimeout(
      () =>
        setAddress(
          Object.fromEntries(
            DRAFT_FIELDS.map((field) => [field, draft[field] === INITIAL[field] ? null : draft[field]]),
          ),
        ),
      TYPING_MS,
    );
    return () => window.clearTimeout(timer);
  }, [draft, setAddress]);
  const set = (field: DraftField, value: string) => {
    setDraft((before) => ({ ...before, [field]: value }));
    setTouched((before) => new Set(before).add(field));
  };
  return { draft, set, touched };
}

function Kinds({ value, onChange, disabled }: { value: string; onChange: (kind: string) => void; disabled: boolean }) {
  return (
    <Radio.Group label={words.fields.kind} value={value} onChange={onChange} size="xs">
      <div className={classes.kinds}>
        {KINDS.map((kind) => (
          <Radio.Card key={kind} value={kind} disabled={disabled} className={classes.kind} radius="md">
            <span className={classes.kindHead}>
              <Radio.Indicator size="xs" />
              {words.kinds[kind]}
            </span>
            <span className="dim">{words.kindHints[kind]}</span>
          </Radio.Card>
        ))}
      </div>
    </Radio.Group>
  );
}

interface FilesProps {
  name: string;
  chosen: Chosen | null;
  onChoose: (chosen: Chosen | null) => void;
  error: string | null;
  disabled: boolean;
}

/** What is sent; and whether a part of it was sent before. */
function Files({ name, chosen, onChoose, error, disabled }: FilesProps) {
  const uploads = useGet("/v1/uploads", {});
  const begun = uploads.data?.uploads.find(
    (one) => !one.taken_by && nameIn(one.fingerprint ?? "") === name && name !== "",
  );
  const hint = begun === undefined ? words.dropHint : words.begun(bytes(begun.offset ?? 0), bytes(begun.num_bytes));
  return (
    <DropFiles
      label={words.fields.from}
      chosen={chosen}
      onChoose={onChoose}
      error={error}
      hint={hint}
      disabled={disabled}
    />
  );
}

interface FieldProps {
  form: Form;
  field: DraftField;
  label: string;
  hint?: string;
  error: string | null;
}

function Field({ form, field, label, hint, error }: FieldProps) {
  return (
    <TextInput
      label={label}
      description={hint}
      spellCheck={false}
      autoComplete="off"
      value={form.draft[field]}
      error={error}
      onChange={(event) => form.set(field, event.currentTarget.value)}
    />
  );
}

function NumberField({ form, field, label, hint, error }: FieldProps) {
  const value = form.draft[field];
  return (
    <NumberInput
      label={label}
      description={hint}
      clampBehavior="none"
      min={0}
      value={value === "" || Number.isNaN(Number(value)) ? value : Number(value)}
      error={error}
      onChange={(next) => form.set(field, String(next))}
    />
  );
}

/** How samples are dealt out, and what is done to them. */
function Rules({ form, errorOf }: { form: Form; errorOf: (field: DraftField) => string | null }) {
  const { draft, set } = form;
  const number = (field: DraftField, label: string, hint?: string) => (
    <NumberField form={form} field={field} label={label} hint={hint} error={errorOf(field)} />
  );
  const choice = (field: DraftField, label: string, of: Readonly<Record<string, string>>) => (
    <Select
      label={label}
      allowDeselect={false}
      data={Object.entries(of).map(([value, said]) => ({ value, label: said }))}
      value={draft[field]}
      onChange={(value) => set(field, value ?? "")}
    />
  );
  return (
    <Panel title={words.splits}>
      <Stack gap="sm">
        <div className={classes.three}>
          {number("split.validation_percent", words.fields.validation)}
          {number("split.test_percent", words.fields.test)}
          {number("split.seed", words.fields.seed)}
        </div>
        {draft.kind === "images" ? (
          <>
            <div className={classes.three}>
              {number("images.width", words.fields.width)}
              {number("images.height", words.fields.height)}
              {choice("images.resizing", words.fields.resizing, words.resizing)}
            </div>
            <div className={classes.three}>{choice("images.colour", words.fields.colour, words.colours)}</div>
          </>
        ) : (
          <>
            <div className={classes.three}>{choice("csv.delimiter", words.fields.delimiter, words.delimiters)}</div>
            <Checkbox
              size="xs"
              label={words.fields.header}
              checked={draft["csv.header"] === "true"}
              onChange={(event) => set("csv.header", String(event.currentTarget.checked))}
            />
          </>
        )}
      </Stack>
    </Panel>
  );
}
